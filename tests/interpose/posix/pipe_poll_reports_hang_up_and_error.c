// SPDX-License-Identifier: Apache-2.0
// poll reports to a reader that the writers are gone, and to a writer that the readers are.
#define _GNU_SOURCE
#include <poll.h>

#include "../small.h"

int main(void) {
  int a[2], b[2];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  struct pollfd p = {a[0], POLLIN, 0}, q = {b[1], POLLOUT, 0};
  CHECK_EQUAL(poll(&p, 1, 0), 0);
  CHECK_EQUAL(poll(&q, 1, 0), 1);
  CHECK_EQUAL(q.revents, POLLOUT);
  CHECK_EQUAL(write(a[1], "x", 1), 1);
  close(a[1]);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents, POLLIN | POLLHUP);
  char c;
  CHECK_EQUAL(read(a[0], &c, 1), 1);
  CHECK_EQUAL(poll(&p, 1, -1), 1);
  CHECK_EQUAL(p.revents, POLLHUP);
  close(b[0]);
  CHECK_EQUAL(poll(&q, 1, -1), 1);
  CHECK_EQUAL(q.revents & POLLERR, POLLERR);
  return succeed();
}
