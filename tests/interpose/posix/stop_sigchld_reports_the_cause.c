// SPDX-License-Identifier: Apache-2.0
// SIGCHLD's siginfo reports a stop, a continuation and the end; with SA_NOCLDSTOP only the end.
#include <sys/wait.h>

#include "../small.h"

static volatile sig_atomic_t codes[8], statuses[8], calls;
static volatile pid_t from;
static void on_child(int signo, siginfo_t* info, void* context) {
  (void)context;
  if (signo != SIGCHLD || calls == 8) _exit(9);
  codes[calls] = info->si_code;
  statuses[calls] = info->si_status;
  from = info->si_pid;
  ++calls;
}

static void one_life(int flags) {
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_sigaction = on_child;
  a.sa_flags = SA_SIGINFO | SA_RESTART | flags;
  CHECK_EQUAL(sigaction(SIGCHLD, &a, NULL), 0);
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    raise(SIGTERM);
    _exit(1);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, WUNTRACED), child);
  CHECK_EQUAL(WIFSTOPPED(status), 1);
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(WIFSIGNALED(status), 1);
  CHECK_EQUAL(WTERMSIG(status), SIGTERM);
  CHECK_EQUAL(from, child);
}

int main(void) {
  one_life(0);
  // The continuation and the end may be one signal, because SIGCHLD is not queued.
  CHECK(calls == 2 || calls == 3);
  CHECK_EQUAL(codes[0], CLD_STOPPED);
  CHECK_EQUAL(statuses[0], SIGSTOP);
  if (calls == 3) {
    CHECK_EQUAL(codes[1], CLD_CONTINUED);
    CHECK_EQUAL(statuses[1], SIGCONT);
    CHECK_EQUAL(codes[2], CLD_KILLED);
    CHECK_EQUAL(statuses[2], SIGTERM);
  }
  calls = 0;
  one_life(SA_NOCLDSTOP);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(codes[0], CLD_KILLED);
  CHECK_EQUAL(statuses[0], SIGTERM);
  return succeed();
}
