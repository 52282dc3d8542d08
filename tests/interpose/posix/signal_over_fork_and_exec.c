// SPDX-License-Identifier: Apache-2.0
// Over fork, handlers are inherited and pending signals are not. Over exec, the mask, ignored
// signals and pending signals stay, and handlers are reset.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

static volatile int rung;
static void ring(int signo) { rung += signo == SIGUSR1; }

static int check_image(void) {
  struct sigaction a;
  sigset_t set;
  sigaction(SIGUSR1, NULL, &a);
  CHECK(a.sa_handler == SIG_DFL);
  sigaction(SIGHUP, NULL, &a);
  CHECK(a.sa_handler == SIG_IGN);
  sigprocmask(SIG_BLOCK, NULL, &set);
  CHECK_EQUAL(sigismember(&set, SIGUSR2), 1);
  sigpending(&set);
  CHECK_EQUAL(sigismember(&set, SIGUSR2), 1);
  return succeed();
}

int main(int argc, char** argv) {
  if (argc > 1) return check_image();
  int status = 0;
  handle(SIGUSR1, ring, 0);
  handle(SIGHUP, SIG_IGN, 0);
  block_signal(SIGUSR2);
  raise(SIGUSR2);
  const pid_t child = fork();
  if (child == 0) {
    sigset_t set;
    sigpending(&set);
    CHECK_EQUAL(sigismember(&set, SIGUSR2), 0);
    raise(SIGUSR1);
    CHECK_EQUAL(rung, 1);
    _exit(0);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
  execl("/proc/self/exe", argv[0], "x", (char*)NULL);
  return 1;
}
