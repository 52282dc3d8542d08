// SPDX-License-Identifier: Apache-2.0
// select leaves ready descriptors in the sets, empties them at the time-out, and returns EBADF for
// closed ones.
#define _GNU_SOURCE
#include <sys/select.h>

#include "../small.h"

int main(void) {
  int a[2], b[2];
  fd_set in, out;
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(a[0], &in);
  FD_SET(b[0], &in);
  struct timeval t = {0, 10000};
  CHECK_EQUAL(select(b[1] + 1, &in, NULL, NULL, &t), 0);
  CHECK(!FD_ISSET(a[0], &in) && !FD_ISSET(b[0], &in));
  CHECK_EQUAL(write(b[1], "x", 1), 1);
  FD_SET(a[0], &in);
  FD_SET(b[0], &in);
  FD_SET(a[1], &out);
  CHECK_EQUAL(select(b[1] + 1, &in, &out, NULL, NULL), 2);
  CHECK(!FD_ISSET(a[0], &in) && FD_ISSET(b[0], &in) && FD_ISSET(a[1], &out));
  close(a[0]);
  FD_SET(a[0], &in);
  t.tv_usec = 0;
  CHECK_EQUAL(select(b[1] + 1, &in, NULL, NULL, &t), -1);
  CHECK_EQUAL(errno, EBADF);
  t.tv_sec = -1;
  CHECK_EQUAL(select(0, NULL, NULL, NULL, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
