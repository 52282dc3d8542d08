// SPDX-License-Identifier: Apache-2.0
// time(), gettimeofday(), clock_gettime() and the system call return one time, which never goes
// back.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>

#include "../small.h"

int main(void) {
  for (int i = 0; i < 100; ++i) {
    struct timeval tv;
    struct timespec raw;
    const time_t a = time(NULL);
    gettimeofday(&tv, NULL);
    CHECK(tv.tv_sec >= a);
    CHECK_EQUAL(syscall(SYS_clock_gettime, CLOCK_REALTIME, &raw), 0);
    CHECK(raw.tv_sec > tv.tv_sec || (raw.tv_sec == tv.tv_sec && raw.tv_nsec / 1000 >= tv.tv_usec));
    const long long later = now_ns(CLOCK_REALTIME);
    CHECK(later >= raw.tv_sec * 1000000000LL + raw.tv_nsec);
    CHECK(later - a * 1000000000LL < 60000 * MS);
  }
  return succeed();
}
