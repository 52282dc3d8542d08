// SPDX-License-Identifier: Apache-2.0
// A thread has its own name, inherited from its creator, at most 15 bytes long; prctl returns the
// same one.
#define _GNU_SOURCE
#include <sys/prctl.h>

#include "../small.h"

static sem_t named, done;

static void* rename_itself(void* unused) {
  char name[16];
  CHECK_EQUAL(pthread_getname_np(pthread_self(), name, sizeof name), 0);
  CHECK_EQUAL(strcmp(name, "creator"), 0);
  CHECK_EQUAL(prctl(PR_SET_NAME, "a long name that is cut"), 0);
  CHECK_EQUAL(prctl(PR_GET_NAME, name), 0);
  CHECK_EQUAL(strcmp(name, "a long name tha"), 0);
  CHECK_EQUAL(sem_post(&named), 0);
  CHECK_EQUAL(sem_wait(&done), 0);
  CHECK_EQUAL(prctl(PR_GET_NAME, name), 0);
  CHECK_EQUAL(strcmp(name, "from outside"), 0);
  return unused;
}

int main(void) {
  char name[16];
  CHECK_EQUAL(sem_init(&named, 0, 0), 0);
  CHECK_EQUAL(sem_init(&done, 0, 0), 0);
  CHECK_EQUAL(pthread_setname_np(pthread_self(), "creator"), 0);
  CHECK_EQUAL(pthread_setname_np(pthread_self(), "sixteen bytes...."), ERANGE);
  CHECK_EQUAL(pthread_getname_np(pthread_self(), name, 5), ERANGE);
  const pthread_t t = start(rename_itself, NULL);
  CHECK_EQUAL(sem_wait(&named), 0);
  CHECK_EQUAL(pthread_getname_np(t, name, sizeof name), 0);
  CHECK_EQUAL(strcmp(name, "a long name tha"), 0);
  CHECK_EQUAL(pthread_setname_np(t, "from outside"), 0);
  CHECK_EQUAL(sem_post(&done), 0);
  join(t);
  CHECK_EQUAL(pthread_getname_np(pthread_self(), name, sizeof name), 0);
  CHECK_EQUAL(strcmp(name, "creator"), 0);
  return succeed();
}
