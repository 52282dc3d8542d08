// SPDX-License-Identifier: Apache-2.0
// pthread_getcpuclockid names the clock of a thread, clock_getcpuclockid that of a process.
#include "../small.h"

static sem_t go, begun;
static void* work(void* x) {
  sem_post(&begun);
  sem_wait(&go);
  return x;
}

int main(void) {
  clockid_t of_thread, own, of_process;
  sem_init(&go, 0, 0);
  sem_init(&begun, 0, 0);
  const pthread_t t = start(work, NULL);
  sem_wait(&begun);
  CHECK_EQUAL(pthread_getcpuclockid(t, &of_thread), 0);
  CHECK_EQUAL(pthread_getcpuclockid(pthread_self(), &own), 0);
  CHECK(own != of_thread);
  CHECK(now_ns(of_thread) >= 0);
  CHECK(now_ns(own) > 0);
  CHECK_EQUAL(clock_getcpuclockid(0, &of_process), 0);
  CHECK(now_ns(of_process) > 0);
  CHECK_EQUAL(clock_getcpuclockid(getpid(), &of_process), 0);
  CHECK(now_ns(of_process) > 0);
  CHECK_EQUAL(clock_getcpuclockid(0x3ffffffe, &of_process), ESRCH);
  sem_post(&go);
  join(t);
  return succeed();
}
