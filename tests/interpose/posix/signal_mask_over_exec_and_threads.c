// SPDX-License-Identifier: Apache-2.0
// The mask, ignored signals and pending signals survive exec, whichever thread calls it.
#include "../child.h"

static char* self_path;

static int is_pending(int signo) {
  sigset_t set;
  CHECK_EQUAL(sigpending(&set), 0);
  return sigismember(&set, signo);
}

static void* exec_again(void* unused) {
  char again[] = "again";
  char* argv[] = {self_path, again, NULL};
  block_signal(SIGUSR2);
  execv("/proc/self/exe", argv);
  CHECK(0);
  return unused;
}

static int goes_over(int unused) {
  block_signal(SIGUSR1);
  signal(SIGHUP, SIG_IGN);
  raise(SIGUSR1);
  CHECK_EQUAL(kill(getpid(), SIGUSR1), 0);
  elsewhere(exec_again, NULL);
  return unused;
}

int main(int argc, char** argv) {
  self_path = argv[0];
  if (argc > 1) {
    sigset_t now;
    struct sigaction a;
    CHECK_EQUAL(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    CHECK_EQUAL(sigismember(&now, SIGUSR1), 1);
    CHECK_EQUAL(sigismember(&now, SIGUSR2), 1);
    CHECK_EQUAL(is_pending(SIGUSR1), 1);
    CHECK_EQUAL(sigaction(SIGHUP, NULL, &a), 0);
    CHECK(a.sa_handler == SIG_IGN);
    CHECK_EQUAL(gettid(), getpid());
    return 7;
  }
  CHECK_EQUAL(status_of(start_process(goes_over, 0)), 7 << 8);
  return succeed();
}
