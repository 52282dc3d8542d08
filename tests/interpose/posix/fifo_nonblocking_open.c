// SPDX-License-Identifier: Apache-2.0
// A nonblocking open for reading succeeds at once, one for writing returns ENXIO without a reader;
// poll reports a hang-up only after a first writer has closed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char path[80], b[8];
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  CHECK_EQUAL(mkfifo(path, 0600), -1);
  CHECK_EQUAL(errno, EEXIST);
  CHECK_EQUAL(open(path, O_WRONLY | O_NONBLOCK), -1);
  CHECK_EQUAL(errno, ENXIO);
  const int in = open(path, O_RDONLY | O_NONBLOCK);
  CHECK(in >= 0);
  struct pollfd p = {in, POLLIN, 0};
  CHECK_EQUAL(poll(&p, 1, 10), 0);
  CHECK_EQUAL(read(in, b, sizeof b), 0);
  const int out = open(path, O_WRONLY | O_NONBLOCK);
  CHECK(out >= 0);
  CHECK_EQUAL(read(in, b, sizeof b), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(write(out, "xy", 2), 2);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents, POLLIN);
  close(out);
  CHECK_EQUAL(read(in, b, sizeof b), 2);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents, POLLHUP);
  CHECK_EQUAL(read(in, b, sizeof b), 0);
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
