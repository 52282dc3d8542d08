// SPDX-License-Identifier: Apache-2.0
// clock_gettime and clock_getres refuse numbers that belong to no clock and no process.
#include "../small.h"

static void refuses(clockid_t clock) {
  struct timespec t;
  CHECK_EQUAL(clock_gettime(clock, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(clock_getres(clock, &t), -1);
  CHECK_EQUAL(errno, EINVAL);
}

static clockid_t clock_of_process(int pid) { return (clockid_t)((~(unsigned)pid << 3) | 2); }

int main(void) {
  struct timespec t;
  refuses(12);
  refuses(99);
  refuses(clock_of_process(0x1ffffffe));
  CHECK_EQUAL(clock_getres(CLOCK_REALTIME, NULL), 0);
  CHECK_EQUAL(clock_getres(CLOCK_MONOTONIC, &t), 0);
  CHECK_EQUAL(t.tv_sec, 0);
  CHECK_EQUAL(t.tv_nsec, 1);
  CHECK_EQUAL(clock_gettime(clock_of_process(getpid()), &t), 0);
  CHECK_EQUAL(clock_getres(clock_of_process(getpid()), &t), 0);
  clockid_t clock;
  CHECK_EQUAL(clock_getcpuclockid(0, &clock), 0);
  CHECK_EQUAL(clock_gettime(clock, &t), 0);
  CHECK_EQUAL(clock_getcpuclockid(0x1ffffffe, &clock), ESRCH);
  return succeed();
}
