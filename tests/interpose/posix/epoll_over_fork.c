// SPDX-License-Identifier: Apache-2.0
// A child shares its parent's epoll: additions and removals affect both, and a file that one of
// them has closed is still reported while the other has it open.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  int a[2], b[2];
  struct epoll_event v = {EPOLLIN, {.u32 = 1}}, got[2];
  CHECK_EQUAL(pipe(a), 0);
  CHECK_EQUAL(pipe(b), 0);
  const int e = epoll_create1(0);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, a[0], &v), 0);
  const pid_t child = fork();
  if (child == 0) {
    v.data.u32 = 2;
    if (epoll_ctl(e, EPOLL_CTL_ADD, b[0], &v) != 0) _exit(1);
    if (epoll_ctl(e, EPOLL_CTL_DEL, a[0], NULL) != 0) _exit(2);
    _exit(write(b[1], "x", 1) == 1 && write(a[1], "x", 1) == 1 ? 42 : 3);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK_EQUAL(epoll_wait(e, got, 2, 0), 1);
  CHECK_EQUAL(got[0].data.u32, 2);
  CHECK_EQUAL(epoll_ctl(e, EPOLL_CTL_ADD, a[0], &v), 0);
  CHECK_EQUAL(epoll_wait(e, got, 2, 0), 2);
  return succeed();
}
