// SPDX-License-Identifier: Apache-2.0
// A FIFO opened O_RDWR does not wait, is its own reader and writer, and never ends.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char dir[] = "/tmp/fifoXXXXXX", name[64], b[8];
  CHECK(mkdtemp(dir) != NULL);
  snprintf(name, sizeof name, "%s/f", dir);
  CHECK_EQUAL(mkfifo(name, 0600), 0);
  const int fd = open(name, O_RDWR);
  unlink(name);
  rmdir(dir);
  CHECK(fd >= 0);
  CHECK_EQUAL(write(fd, "abc", 3), 3);
  CHECK_EQUAL(read(fd, b, 2), 2);
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 1);
  CHECK_EQUAL(p.revents, POLLIN | POLLOUT);
  CHECK_EQUAL(read(fd, b, 2), 1);
  CHECK_EQUAL(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  CHECK_EQUAL(read(fd, b, 2), -1);
  CHECK_EQUAL(errno, EAGAIN);
  return succeed();
}
