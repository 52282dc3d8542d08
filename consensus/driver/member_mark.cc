// SPDX-License-Identifier: Apache-2.0
#include "consensus/member_mark.h"

#include <fcntl.h>
#include <unistd.h>

namespace crane::consensus {
namespace {

std::string path_of(const std::string& directory, ReplicaId self) {
  return directory + "/member-" + std::to_string(value(self));
}

bool holds(const std::string& path, std::uint64_t log_id) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::uint64_t id = 0;
  const bool whole = ::read(fd, &id, sizeof id) == sizeof id;
  ::close(fd);
  return whole && id == log_id;
}

}  // namespace

bool was_member(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  return holds(path_of(directory, self), log_id);
}

bool was_restored(const std::string& directory, std::uint64_t log_id) {
  return holds(directory + "/restored", log_id);
}

Outcome mark_member(const std::string& directory, ReplicaId self, std::uint64_t log_id) {
  if (was_member(directory, self, log_id)) return Done{};
  const std::string path = path_of(directory, self);
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("mark the replica as a member");
  const bool whole = ::write(fd, &log_id, sizeof log_id) == sizeof log_id && ::fsync(fd) == 0;
  const Error why = system_error("mark the replica as a member");
  ::close(fd);
  if (!whole) return why;
  return Done{};
}

}  // namespace crane::consensus
