// SPDX-License-Identifier: Apache-2.0
// A process whose parent ends gets another parent, and continues.
#define _GNU_SOURCE
#include "../child.h"

static pid_t parent;
static int grandchild(int to) {
  while (getppid() == parent) sleep_ms(1);
  return write(to, "o", 1) == 1 ? 0 : 1;
}
static int child(int to) {
  parent = getpid();
  start_process(grandchild, to);
  return 0;
}

int main(void) {
  int fds[2];
  char c = 0;
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(status_of(start_process(child, fds[1])), 0);
  close(fds[1]);
  CHECK_EQUAL(read(fds[0], &c, 1), 1);
  CHECK_EQUAL(c, 'o');
  CHECK_EQUAL(read(fds[0], &c, 1), 0);
  return succeed();
}
