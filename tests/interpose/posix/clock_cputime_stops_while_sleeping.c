// SPDX-License-Identifier: Apache-2.0
// The processor clock does not count a sleep.
#define _GNU_SOURCE
#include <sys/resource.h>

#include "../small.h"

int main(void) {
  const long long before = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  sleep_ms(60);
  const long long after = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  CHECK(after > before);
  CHECK(after - before < 50 * MS);
  const clock_t begun = clock();
  CHECK(clock() >= begun);
  struct rusage r;
  CHECK_EQUAL(getrusage(RUSAGE_SELF, &r), 0);
  CHECK_EQUAL(getrusage(99, &r), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
