// SPDX-License-Identifier: Apache-2.0
// Timers of timer_create do not survive exec: the new program gets no signal from them.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    const struct itimerspec soon = {.it_value = {0, 100 * MS}};
    timer_t t;
    CHECK_EQUAL(timer_create(CLOCK_REALTIME, &e, &t), 0);
    CHECK_EQUAL(timer_settime(t, 0, &soon, NULL), 0);
    execl("/bin/sleep", "sleep", "0.3", NULL);
    _exit(1);
  }
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQUAL(WEXITSTATUS(status), 0);
  return succeed();
}
