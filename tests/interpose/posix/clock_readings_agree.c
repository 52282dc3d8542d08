// SPDX-License-Identifier: Apache-2.0
// time, gettimeofday, timespec_get and times agree with clock_gettime, each rounded down to its
// unit, and none goes back.
#include <sys/time.h>
#include <sys/times.h>

#include "../small.h"

static long long last;

static void in_order(long long ns, long long unit) {
  CHECK(ns + unit > last);
  const long long now = now_ns(CLOCK_REALTIME);
  CHECK(ns <= now);
  last = now;
}

int main(void) {
  for (int i = 0; i < 20; ++i) {
    struct timeval v;
    struct timespec t;
    last = now_ns(CLOCK_REALTIME);
    CHECK_EQUAL(gettimeofday(&v, NULL), 0);
    in_order(v.tv_sec * 1000000000LL + v.tv_usec * 1000LL, 1000);
    CHECK_EQUAL(timespec_get(&t, TIME_UTC), TIME_UTC);
    in_order(t.tv_sec * 1000000000LL + t.tv_nsec, 1);
    time_t stored;
    const time_t seconds = time(&stored);
    CHECK_EQUAL(seconds, stored);
    in_order(seconds * 1000000000LL, 2000000000);
    if (i % 5 == 0) sleep_ms(3);
  }
  struct tms used;
  const clock_t before = times(&used);
  CHECK(before != (clock_t)-1);
  CHECK(used.tms_utime >= 0 && used.tms_stime >= 0);
  CHECK_EQUAL(used.tms_cutime, 0);
  sleep_ms(30);
  CHECK(times(NULL) >= before + 2);
  CHECK_EQUAL(sysconf(_SC_CLK_TCK), 100);
  CHECK_EQUAL(timespec_get(&(struct timespec){0, 0}, 99), 0);
  CHECK(clock() >= 0);
  return succeed();
}
