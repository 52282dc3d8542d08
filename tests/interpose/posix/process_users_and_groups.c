// SPDX-License-Identifier: Apache-2.0
// The calls that change users and groups: the resulting three ids, also for the other threads, and
// what an ordinary user may not do.
#define _GNU_SOURCE
#include <grp.h>

#include "../child.h"

static void are(uid_t real, uid_t effective, uid_t saved) {
  uid_t r, e, s;
  CHECK_EQUAL(getresuid(&r, &e, &s), 0);
  CHECK_EQUAL(r, real);
  CHECK_EQUAL(e, effective);
  CHECK_EQUAL(s, saved);
  CHECK_EQUAL(getuid(), real);
  CHECK_EQUAL(geteuid(), effective);
}

static void* is_thousand(void* ready) {
  sem_t* s = ready;
  CHECK_EQUAL(sem_wait(s), 0);
  are(1000, 1000, 1000);
  return NULL;
}

static int goes_down(int unused) {
  gid_t groups[2] = {2000, 2001}, got[4];
  CHECK_EQUAL(setgroups(2, groups), 0);
  CHECK_EQUAL(getgroups(0, NULL), 2);
  CHECK_EQUAL(getgroups(1, got), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(getgroups(4, got), 2);
  CHECK_EQUAL(got[1], 2001);
  CHECK_EQUAL(setegid(3000), 0);
  CHECK_EQUAL(getegid(), 3000);
  CHECK_EQUAL(setgid(3001), 0);
  CHECK_EQUAL(getgid(), 3001);
  CHECK_EQUAL(seteuid(1000), 0);
  are(0, 1000, 0);
  CHECK_EQUAL(seteuid(0), 0);
  CHECK_EQUAL(setreuid(1000, 0), 0);
  are(1000, 0, 0);
  CHECK_EQUAL(setresuid(0, -1, 1001), 0);
  are(0, 0, 1001);
  sem_t ready;
  CHECK_EQUAL(sem_init(&ready, 0, 0), 0);
  const pthread_t t = start(is_thousand, &ready);
  CHECK_EQUAL(setuid(1000), 0);
  are(1000, 1000, 1000);
  CHECK_EQUAL(sem_post(&ready), 0);
  join(t);
  CHECK_EQUAL(setgroups(2, groups), -1);
  CHECK_EQUAL(errno, EPERM);
  return unused;
}

int main(void) {
  if (geteuid() == 0) CHECK_EQUAL(status_of(start_process(goes_down, 0)), 0);
  if (geteuid() == 0) CHECK_EQUAL(setresuid(1000, 1000, 1000), 0);
  const uid_t own = getuid();
  CHECK_EQUAL(setuid(0), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(setresuid(-1, -1, own + 1), -1);
  CHECK_EQUAL(errno, EPERM);
  CHECK_EQUAL(setreuid(own, own), 0);
  CHECK_EQUAL(setegid(getgid()), 0);
  are(own, own, own);
  return succeed();
}
