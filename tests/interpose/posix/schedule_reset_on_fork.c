// SPDX-License-Identifier: Apache-2.0
// SCHED_RESET_ON_FORK reads back with the policy; a child inherits neither the flag nor a policy
// that the flag resets.
#include "../child.h"

static int look(int unused) {
  const struct sched_param none = {0};
  CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER);
  CHECK_EQUAL(sched_setscheduler(0, SCHED_BATCH, &none), 0);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_BATCH);
  return unused;
}

int main(void) {
  const struct sched_param none = {0};
  CHECK_EQUAL(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none), 0);
  CHECK_EQUAL(sched_getscheduler(0), SCHED_OTHER | SCHED_RESET_ON_FORK);
  CHECK_EQUAL(sched_getscheduler(getpid()), SCHED_OTHER | SCHED_RESET_ON_FORK);
  CHECK_EQUAL(status_of(start_process(look, 0)), 0);
  return succeed();
}
