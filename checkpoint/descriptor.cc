// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "checkpoint/fault_points.h"

namespace crane::checkpoint {

Error file_error(const char* step, const std::string& object) {
  const int number = errno;
  Error error{Code::kSystem, number, step,
              std::string("cannot ") + step + " " + object + ": " + std::strerror(number)};
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      error.code = Code::kFull;
      error.text += "; make room on that file system or keep fewer checkpoints, then try again";
      break;
    case ENOENT:
      error.code = Code::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      error.code = Code::kExists;
      break;
    case EPERM:
    case EACCES:
      error.code = Code::kDenied;
      error.text += "; checkpoints need root privilege";
      break;
    default:
      break;
  }
  return error;
}

bool write_all(int fd, const void* data, std::size_t size) noexcept {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

ssize_t read_all(int fd, void* data, std::size_t size) noexcept {
  auto* at = static_cast<char*>(data);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::read(fd, at + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

Outcome sync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return file_error("open", path);
  if (::fsync(fd.get()) != 0) return file_error("sync", path);
  return Done{};
}

Outcome write_file(const std::string& path, const std::string& text, const char* fault) {
  const std::string temporary = path + ".tmp";
  const Descriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return file_error("create", temporary);
  if (!write_all(fd.get(), text.data(), text.size())) return file_error("write", temporary);
  if (::fsync(fd.get()) != 0) return file_error("sync", temporary);
  if (fault != nullptr) fault_point(fault);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return file_error("rename", temporary);
  return Done{};
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return file_error("open", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return file_error("look at", path);
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > limit) {
    return failure(Code::kDamaged, "read", path + " is not a regular file, or is too large");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t n = read_all(fd.get(), text.data(), text.size());
  if (n < 0) return file_error("read", path);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

Result<Descriptor> lock_directory(const std::string& path, int operation) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return file_error("open", path);
  if (::flock(fd.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error("lock", path);
    return failure(
        Code::kBusy, "lock",
        "another process of Crane works in " + path + "; try again when it has finished");
  }
  // Between open and flock another process may have renamed it, to remove it.
  struct stat locked {
  }, named{};
  if (::fstat(fd.get(), &locked) != 0 || ::lstat(path.c_str(), &named) != 0 ||
      locked.st_ino != named.st_ino || locked.st_dev != named.st_dev) {
    errno = ENOENT;
    return file_error("lock", path);
  }
  return fd;
}

}  // namespace crane::checkpoint
