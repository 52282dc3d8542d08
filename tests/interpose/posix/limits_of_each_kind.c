// SPDX-License-Identifier: Apache-2.0
// Every resource has a limit that can be lowered, and raised again up to the hard limit, which an
// ordinary user cannot raise; a child inherits the limits.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  const int kinds[] = {RLIMIT_CORE,   RLIMIT_CPU,     RLIMIT_DATA,     RLIMIT_FSIZE,
                       RLIMIT_LOCKS,  RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_NICE,
                       RLIMIT_RTPRIO, RLIMIT_RTTIME,  RLIMIT_RSS,      RLIMIT_SIGPENDING,
                       RLIMIT_STACK,  RLIMIT_NPROC,   RLIMIT_AS,       RLIMIT_NOFILE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    struct rlimit old, r, now;
    CHECK_EQUAL(getrlimit(kinds[i], &old), 0);
    CHECK(old.rlim_cur <= old.rlim_max);
    r = old;
    if (r.rlim_cur == RLIM_INFINITY)
      r.rlim_cur = (rlim_t)1 << 40;
    else if (kinds[i] != RLIMIT_NPROC && r.rlim_cur > 100)
      --r.rlim_cur;
    CHECK_EQUAL(setrlimit(kinds[i], &r), 0);
    CHECK_EQUAL(getrlimit(kinds[i], &now), 0);
    CHECK(now.rlim_cur == r.rlim_cur && now.rlim_max == r.rlim_max);
    const pid_t child = fork();
    if (child == 0) _exit(getrlimit(kinds[i], &now) != 0 || now.rlim_cur != r.rlim_cur);
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(setrlimit(kinds[i], &old), 0);
  }
  if (geteuid() != 0) {
    struct rlimit r = {0, 10};
    CHECK_EQUAL(setrlimit(RLIMIT_CORE, &r), 0);
    r.rlim_max = 11;
    CHECK(setrlimit(RLIMIT_CORE, &r) == -1 && errno == EPERM);
  }
  return succeed();
}
