// SPDX-License-Identifier: Apache-2.0
#include "consensus/member_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "consensus/store/tail_format.h"

namespace crane::consensus {
namespace {

std::string path_of(const std::string& directory, ReplicaId self) {
  return directory + "/member-" + std::to_string(value(self));
}

// The first two words of a file; zeros for missing ones.
struct Words {
  std::uint64_t first = 0, second = 0;
};
Words words_of(const std::string& path) {
  Words words;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return words;
  Words read;
  const ssize_t got = ::read(fd, &read, sizeof read);
  ::close(fd);
  if (got >= static_cast<ssize_t>(sizeof read.first)) words.first = read.first;
  if (got == static_cast<ssize_t>(sizeof read)) words.second = read.second;
  return words;
}

bool holds(const std::string& path, std::uint64_t log_id) { return words_of(path).first == log_id; }

Outcome write_mark(const std::string& path, std::uint64_t log_id, const char* what) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return system_error(what);
  const bool whole = ::write(fd, &log_id, sizeof log_id) == sizeof log_id && ::fsync(fd) == 0;
  const Error why = system_error(what);
  ::close(fd);
  if (!whole) return why;
  return Done{};
}

}  // namespace

bool was_member(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  return holds(path_of(directory, self), log_id);
}

Outcome mark_member(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  if (was_member(directory, self, log_id)) return Done{};
  return write_mark(path_of(directory, self), log_id, "mark the replica as a member");
}

std::string restored_path(const std::string& directory, ReplicaId self) {
  return directory + "/restored-" + std::to_string(value(self));
}

Outcome mark_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  return write_mark(restored_path(directory, self), log_id, "mark the replica as restored");
}

bool was_restored(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  return holds(restored_path(directory, self), log_id) ||
         !restored_tail(directory, self, log_id).empty();
}

std::string restored_tail(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  std::string path = restored_path(directory, self);
  const Words words = words_of(path);
  return words.first == store::kTailMagic && words.second == log_id ? path : std::string();
}

Outcome forget_restored(const std::string& directory, ReplicaId self) {
  if (::unlink(restored_path(directory, self).c_str()) != 0) {
    if (errno == ENOENT) return Done{};
    return system_error("remove the mark of a restored replica");
  }
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const Error why = system_error("remove the mark of a restored replica");
  if (fd >= 0) ::close(fd);
  if (!synced) return why;
  return Done{};
}

}  // namespace crane::consensus
