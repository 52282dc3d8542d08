// SPDX-License-Identifier: Apache-2.0
// An ignored signal interrupts nothing: pause, sigsuspend and nanosleep continue until one comes
// that has a handler.
#include "../child.h"

static volatile sig_atomic_t calls;
static void note(int signo) {
  (void)signo;
  ++calls;
}

static int sends(int parent) {
  sleep_ms(10);
  kill(parent, SIGUSR2);
  kill(parent, SIGWINCH);
  kill(parent, SIGURG);
  kill(parent, SIGCONT);
  sleep_ms(10);
  kill(parent, SIGUSR1);
  return 0;
}

int main(void) {
  signal(SIGUSR2, SIG_IGN);
  handle(SIGUSR1, note, SA_RESTART);
  block_signal(SIGUSR1);
  pid_t child = start_process(sends, getpid());
  sigset_t none;
  sigemptyset(&none);
  CHECK_EQUAL(sigsuspend(&none), -1);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(status_of(child), 0);
  child = start_process(sends, getpid());
  const struct timespec t = {0, 50 * MS};
  const long long before = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(nanosleep(&t, NULL), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) - before >= 50 * MS);
  CHECK_EQUAL(status_of(child), 0);
  CHECK_EQUAL(calls, 1);
  unblock_signal(SIGUSR1);
  CHECK_EQUAL(calls, 2);
  return succeed();
}
