// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace crane::checkpoint {

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
