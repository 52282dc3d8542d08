// SPDX-License-Identifier: Apache-2.0
// nice and setpriority: values read back, clamped to the valid range; children inherit them; an
// ordinary user cannot undo an increase.
#define _GNU_SOURCE
#include <sys/resource.h>

#include "../child.h"

static int base;

static int look(int wanted) {
  CHECK_EQUAL(getpriority(PRIO_PROCESS, 0), wanted);
  return 0;
}

static int as_user(int unused) {
  if (geteuid() == 0) CHECK_EQUAL(setuid(65534), 0);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, 0, 15), 0);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, 0, 10), -1);
  CHECK_EQUAL(errno, EACCES);
  CHECK_EQUAL(nice(-1), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(getpriority(PRIO_PROCESS, 0), 15);
  return unused;
}

int main(void) {
  errno = 0;
  base = getpriority(PRIO_PROCESS, 0);
  CHECK_EQUAL(errno, 0);
  if (base > 10) return succeed();
  CHECK_EQUAL(nice(1), base + 1);
  CHECK_EQUAL(getpriority(PRIO_PROCESS, 0), base + 1);
  CHECK_EQUAL(getpriority(PRIO_PROCESS, getpid()), base + 1);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, 0, base + 2), 0);
  CHECK_EQUAL(status_of(start_process(look, base + 2)), 0);
  CHECK_EQUAL(status_of(start_process(as_user, 0)), 0);
  CHECK_EQUAL(getpriority(99, 0), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(getpriority(PRIO_PROCESS, 0x3ffffffe), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, 0x3ffffffe, 5), -1);
  CHECK_EQUAL(errno, ESRCH);
  CHECK_EQUAL(setpriority(PRIO_PROCESS, 0, 100), 0);
  CHECK_EQUAL(getpriority(PRIO_PROCESS, 0), 19);
  return succeed();
}
