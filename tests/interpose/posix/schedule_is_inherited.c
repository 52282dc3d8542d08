// SPDX-License-Identifier: Apache-2.0
// Threads, children and executed programs inherit the policy.
#include "../child.h"

static char* self_path;

static void* look(void* unused) {
  CHECK_EQUAL(sched_getscheduler(0), SCHED_BATCH);
  return unused;
}

static int look_and_go_on(int unused) {
  char again[] = "again";
  char* argv[] = {self_path, again, NULL};
  look(NULL);
  elsewhere(look, NULL);
  execv("/proc/self/exe", argv);
  return unused + 1;
}

int main(int argc, char** argv) {
  self_path = argv[0];
  if (argc > 1) {
    look(NULL);
    elsewhere(look, NULL);
    return 7;
  }
  const struct sched_param none = {0};
  CHECK_EQUAL(sched_setscheduler(0, SCHED_BATCH, &none), 0);
  look(NULL);
  elsewhere(look, NULL);
  CHECK_EQUAL(status_of(start_process(look_and_go_on, 0)), 7 << 8);
  return succeed();
}
