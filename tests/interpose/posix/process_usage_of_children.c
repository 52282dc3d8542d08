// SPDX-License-Identifier: Apache-2.0
// wait4 returns a child's resource usage; after the wait, getrusage and times count it for its
// parent.
#include <sys/resource.h>
#include <sys/times.h>

#include "../child.h"

static long long used(const struct rusage* r) {
  return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000LL + r->ru_utime.tv_usec +
         r->ru_stime.tv_usec;
}

static int burns(int unused) {
  const long long end = now_ns(CLOCK_PROCESS_CPUTIME_ID) + 60 * MS;
  while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end) {
  }
  return unused;
}

int main(void) {
  struct rusage r;
  struct tms t;
  CHECK_EQUAL(getrusage(RUSAGE_CHILDREN, &r), 0);
  CHECK_EQUAL(used(&r), 0);
  CHECK(times(&t) != (clock_t)-1);
  CHECK_EQUAL(t.tms_cutime + t.tms_cstime, 0);
  const pid_t child = start_process(burns, 0);
  int status;
  CHECK_EQUAL(wait4(child, &status, 0, &r), child);
  CHECK_EQUAL(status, 0);
  CHECK(used(&r) >= 40000);
  CHECK_EQUAL(getrusage(RUSAGE_CHILDREN, &r), 0);
  CHECK(used(&r) >= 40000);
  CHECK(times(&t) != (clock_t)-1);
  CHECK(t.tms_cutime + t.tms_cstime >= 3);
  CHECK_EQUAL(getrusage(99, &r), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
