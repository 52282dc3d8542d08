// SPDX-License-Identifier: Apache-2.0
// SIGPIPE is sent to the thread that wrote, even if it blocks it, and ends a child that does not
// handle it.
#include <sys/wait.h>

#include "../small.h"

static int fds[2];

static void* write_it(void* unused) {
  (void)unused;
  CHECK_EQUAL(write(fds[1], "x", 1), -1);
  CHECK_EQUAL(errno, EPIPE);
  sigset_t s;
  CHECK_EQUAL(sigpending(&s), 0);
  CHECK_EQUAL(sigismember(&s, SIGPIPE), 1);
  const sigset_t pipe = set_of_signal(SIGPIPE);
  siginfo_t info;
  CHECK_EQUAL(sigwaitinfo(&pipe, &info), SIGPIPE);
  CHECK_EQUAL(sigpending(&s), 0);
  return (void*)(long)sigismember(&s, SIGPIPE);
}

int main(void) {
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(close(fds[0]), 0);
  const pid_t child = fork();
  if (child == 0) {
    write(fds[1], "x", 1);
    _exit(3);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status));
  CHECK_EQUAL(WTERMSIG(status), SIGPIPE);
  block_signal(SIGPIPE);
  CHECK_EQUAL(elsewhere(write_it, NULL), 0);
  sigset_t s;
  CHECK_EQUAL(sigpending(&s), 0);
  CHECK_EQUAL(sigismember(&s, SIGPIPE), 0);
  return succeed();
}
