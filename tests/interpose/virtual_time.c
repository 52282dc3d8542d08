// SPDX-License-Identifier: Apache-2.0
// Clocks never go back, also from thread to thread under a lock (rule 8a); a sleep lasts as long as
// requested (traps 12, 14); a loop that waits for the clock ends (rule 8c); all clocks agree.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long long latest;

static long long now(clockid_t clock) {
  struct timespec t;
  CHECK_EQUAL(clock_gettime(clock, &t), 0);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void* watch(void* x) {
  for (int i = 0; i < 500; ++i) {
    pthread_mutex_lock(&mutex);
    const long long t = now(CLOCK_MONOTONIC);
    CHECK(t >= latest);
    latest = t;
    pthread_mutex_unlock(&mutex);
    for (int j = 0; j < 10; ++j) now(CLOCK_REALTIME);
  }
  return x;
}

int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; ++i) pthread_create(&t[i], NULL, watch, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], NULL);
  printf("monotone\n");

  long long begin = now(CLOCK_MONOTONIC);
  const struct timespec nap = {0, 150000000};
  CHECK_EQUAL(nanosleep(&nap, NULL), 0);
  CHECK(now(CLOCK_MONOTONIC) - begin >= 150000000);
  CHECK(now(CLOCK_MONOTONIC) - begin < 5000000000LL);
  begin = now(CLOCK_REALTIME);
  CHECK_EQUAL(usleep(120000), 0);
  CHECK(now(CLOCK_REALTIME) - begin >= 120000000);
  begin = now(CLOCK_MONOTONIC);
  CHECK_EQUAL(sleep(1), 0);
  CHECK(now(CLOCK_MONOTONIC) - begin >= 1000000000);
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  ++at.tv_sec;
  CHECK_EQUAL(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL), 0);
  CHECK(time(NULL) >= at.tv_sec);
  at.tv_sec -= 1000;
  CHECK_EQUAL(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL), 0);
  const struct timespec bad = {0, 1000000000};
  CHECK(nanosleep(&bad, NULL) == -1 && errno == EINVAL);
  CHECK_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
  printf("sleeps\n");

  begin = now(CLOCK_MONOTONIC);
  while (now(CLOCK_MONOTONIC) < begin + 20000000) {
  }
  const time_t second = time(NULL);
  while (time(NULL) == second) {
  }
  printf("loops\n");

  struct timeval tv;
  gettimeofday(&tv, NULL);
  CHECK(llabs((long long)tv.tv_sec - (long long)time(NULL)) <= 1);
  CHECK(llabs(now(CLOCK_REALTIME_COARSE) / 1000000000 - (long long)tv.tv_sec) <= 1);
  CHECK(now(CLOCK_PROCESS_CPUTIME_ID) >= 0);
  CHECK(clock() >= 0);
  struct tms tms;
  CHECK(times(&tms) != (clock_t)-1);
  CHECK(clock_gettime(12345, &at) == -1 && errno == EINVAL);
  CHECK_EQUAL(clock_getres(CLOCK_MONOTONIC, &at), 0);
  printf("clocks\n");
  return succeed();
}
