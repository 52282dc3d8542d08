// SPDX-License-Identifier: Apache-2.0
// prctl: settings read back (name, dumpable, no new privileges, timer slack, death signal,
// subreaper, keepcaps), capabilities of the bounding set are returned, bad options fail with
// EINVAL.
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  char name[17] = "";
  int v = -1;
  CHECK_EQUAL(prctl(PR_SET_NAME, "a name of more than 15", 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_NAME, name, 0, 0, 0), 0);
  CHECK_EQUAL(strcmp(name, "a name of more "), 0);
  CHECK_EQUAL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
  FAILS(prctl(PR_SET_DUMPABLE, 7, 0, 0, 0), EINVAL);
  CHECK_EQUAL(prctl(PR_SET_TIMERSLACK, 12345, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 12345);
  CHECK_EQUAL(prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_PDEATHSIG, &v, 0, 0, 0), 0);
  CHECK_EQUAL(v, SIGUSR1);
  FAILS(prctl(PR_SET_PDEATHSIG, 1000, 0, 0, 0), EINVAL);
  CHECK_EQUAL(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_CHILD_SUBREAPER, &v, 0, 0, 0), 0);
  CHECK_EQUAL(v, 1);
  CHECK_EQUAL(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0), 1);
  CHECK_EQUAL(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
  FAILS(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
  CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQUAL(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
  const pid_t child = fork();
  if (child == 0) _exit(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) + 41);
  CHECK_EQUAL(waitpid(child, &v, 0), child);
  CHECK_EQUAL(WEXITSTATUS(v), 42);
  CHECK(prctl(PR_CAPBSET_READ, 0, 0, 0, 0) >= 0);
  FAILS(prctl(PR_CAPBSET_READ, 1000, 0, 0, 0), EINVAL);
  FAILS(prctl(123456, 0, 0, 0, 0), EINVAL);
  return succeed();
}
