// SPDX-License-Identifier: Apache-2.0
// The parent continues when its child has executed a program or has ended, not before, and runs no
// handler until then.
#define _GNU_SOURCE
#include "../child.h"

static volatile int step;
static volatile int step_in_handler = -1;

static void note_step(int signo) {
  (void)signo;
  step_in_handler = step;
}

int main(void) {
  handle(SIGUSR1, note_step, 0);
  const long long begin = now_ns(CLOCK_MONOTONIC);
  pid_t p = vfork();
  if (p == 0) {
    kill(getppid(), SIGUSR1);
    sleep_ms(60);
    step = 1;
    execl("/bin/sh", "sh", "-c", "exit 0", (char*)NULL);
    _exit(127);
  }
  CHECK_EQUAL(step, 1);
  CHECK_EQUAL(step_in_handler, 1);
  CHECK(now_ns(CLOCK_MONOTONIC) - begin >= 60 * MS);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 0);

  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  p = vfork();
  if (p == 0) {
    sleep_ms(30);
    if (write(ends[1], "w", 1) != 1) _exit(1);
    step = 2;
    _exit(0);
  }
  CHECK_EQUAL(step, 2);
  char byte = 0;
  CHECK_EQUAL(read(ends[0], &byte, 1), 1);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 0);
  // But it does not wait for the program that the child executes.
  p = vfork();
  if (p == 0) {
    execl("/bin/sh", "sh", "-c", "sleep 100", (char*)NULL);
    _exit(127);
  }
  CHECK_EQUAL(kill(p, SIGTERM), 0);
  CHECK_EQUAL(WTERMSIG(status_of(p)), SIGTERM);
  return succeed();
}
