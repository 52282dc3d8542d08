// SPDX-License-Identifier: Apache-2.0
// sem_open: the same name gives the same semaphore and the same address, invalid names are refused,
// and an unlinked semaphore exists until it is closed.
#include <fcntl.h>
#include <limits.h>

#include "../child.h"

static sem_t* s;

static int posts(int unused) {
  CHECK_EQUAL(sem_post(s), 0);
  return unused;
}

static void not_opened(const char* name, int flags, unsigned value, int error) {
  CHECK(sem_open(name, flags, 0600, value) == SEM_FAILED);
  CHECK_EQUAL(errno, error);
}

int main(void) {
  char name[80], long_name[300] = "/";
  memset(long_name + 1, 'n', 280);
  snprintf(name, sizeof name, "/sem_open_names-%d", getpid());
  not_opened("/", O_CREAT, 0, EINVAL);
  not_opened("", O_CREAT, 0, EINVAL);
  not_opened("/a/b", O_CREAT, 0, EINVAL);
  not_opened(name, 0, 0, ENOENT);
  not_opened(name, O_CREAT, (unsigned)SEM_VALUE_MAX + 1, EINVAL);
  CHECK(sem_open(long_name, O_CREAT, 0600, 0) == SEM_FAILED);
  s = sem_open(name, O_CREAT | O_EXCL, 0600, 2);
  CHECK(s != SEM_FAILED);
  not_opened(name, O_CREAT | O_EXCL, 1, EEXIST);
  CHECK(sem_open(name, 0) == s);
  CHECK(sem_open(name, O_CREAT, 0600, 5) == s);
  CHECK_EQUAL(sem_close(s), 0);
  CHECK_EQUAL(sem_close(s), 0);
  CHECK_EQUAL(sem_unlink(name), 0);
  CHECK_EQUAL(sem_unlink(name), -1);
  CHECK_EQUAL(errno, ENOENT);
  not_opened(name, 0, 0, ENOENT);
  int value = -1;
  CHECK_EQUAL(sem_getvalue(s, &value), 0);
  CHECK_EQUAL(value, 2);
  CHECK_EQUAL(status_of(start_process(posts, 0)), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(sem_trywait(s), 0);
  CHECK_EQUAL(sem_trywait(s), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(sem_close(s), 0);
  return succeed();
}
