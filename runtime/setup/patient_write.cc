// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/patient_write.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace crane::setup {

ssize_t write_what_fits(int fd, const char* data, std::size_t size) noexcept {
  struct stat what {};
  // A file has no reader that its writer could wait for.
  if (::fstat(fd, &what) == 0 && S_ISREG(what.st_mode)) return ::write(fd, data, size);
  std::size_t done = 0;
  while (done < size) {
    // A writable pipe has room for PIPE_BUF bytes; a terminal takes as much as it can.
    pollfd room{fd, POLLOUT, 0};
    if (::poll(&room, 1, 0) <= 0) break;
    const ssize_t n = ::write(fd, data + done, std::min<std::size_t>(size - done, PIPE_BUF));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) return -1;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (done > 0 || size == 0) return static_cast<ssize_t>(done);
  errno = EAGAIN;
  return -1;
}

}  // namespace crane::setup
