// SPDX-License-Identifier: Apache-2.0
// pselect waits with its own signal mask, ends with EINTR by the handler, restores the mask, and
// does not change its time; select reports both ends of a pipe.
#define _GNU_SOURCE
#include <sys/select.h>

#include "../small.h"

static volatile sig_atomic_t caught;
static void note(int signo) { caught = signo; }

int main(void) {
  int fds[2];
  sigset_t empty, now;
  CHECK_EQUAL(pipe(fds), 0);
  sigemptyset(&empty);
  handle(SIGUSR1, note, SA_RESTART);
  block_signal(SIGUSR1);
  raise(SIGUSR1);
  fd_set in, out;
  FD_ZERO(&in);
  FD_SET(fds[0], &in);
  struct timespec t = {5, 0};
  CHECK_EQUAL(pselect(fds[0] + 1, &in, NULL, NULL, &t, &empty), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(caught, SIGUSR1);
  CHECK_EQUAL(t.tv_sec, 5);
  CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &now), 0);
  CHECK_EQUAL(sigismember(&now, SIGUSR1), 1);
  t = (struct timespec){0, 5 * MS};
  FD_ZERO(&in);
  FD_SET(fds[0], &in);
  CHECK_EQUAL(pselect(fds[0] + 1, &in, NULL, NULL, &t, &empty), 0);
  CHECK(!FD_ISSET(fds[0], &in));
  CHECK_EQUAL(t.tv_nsec, 5 * MS);
  struct timeval v = {0, 5000};
  CHECK_EQUAL(select(0, NULL, NULL, NULL, &v), 0);
  CHECK(v.tv_sec == 0 && v.tv_usec == 0);
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(fds[0], &in);
  FD_SET(fds[1], &out);
  CHECK_EQUAL(select(fds[1] + 1, &in, &out, NULL, NULL), 1);
  CHECK(!FD_ISSET(fds[0], &in) && FD_ISSET(fds[1], &out));
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  FD_SET(fds[0], &in);
  CHECK_EQUAL(select(fds[1] + 1, &in, &out, NULL, NULL), 2);
  return succeed();
}
