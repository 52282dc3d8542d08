// SPDX-License-Identifier: Apache-2.0
// Limits: values read back, a soft limit above the hard one is refused, children inherit them, and
// the descriptor limit holds.
#define _GNU_SOURCE
#include <sys/resource.h>

#include "../child.h"

static int look(int resource) {
  struct rlimit l;
  CHECK_EQUAL(getrlimit(resource, &l), 0);
  CHECK_EQUAL(l.rlim_cur, 30);
  CHECK_EQUAL(l.rlim_max, 40);
  return 0;
}

static int cannot_raise(int unused) {
  const struct rlimit more = {30, 50};
  if (geteuid() == 0) CHECK_EQUAL(setuid(65534), 0);
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &more), -1);
  CHECK_EQUAL(errno, EPERM);
  return unused;
}

int main(void) {
  const struct rlimit wanted = {30, 40}, wrong = {41, 40}, zero = {0, 0};
  struct rlimit old;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &wanted), 0);
  look(RLIMIT_NOFILE);
  CHECK_EQUAL(status_of(start_process(look, RLIMIT_NOFILE)), 0);
  CHECK_EQUAL(status_of(start_process(cannot_raise, 0)), 0);
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &wrong), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(getrlimit(99, &old), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sysconf(_SC_OPEN_MAX), 30);
  CHECK_EQUAL(getdtablesize(), 30);
  int last = -1, fd;
  while ((fd = dup(1)) >= 0) last = fd;
  CHECK_EQUAL(errno, EMFILE);
  CHECK_EQUAL(last, 29);
  CHECK_EQUAL(dup2(1, 30), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(prlimit(0, RLIMIT_CORE, &zero, &old), 0);
  CHECK_EQUAL(prlimit(getpid(), RLIMIT_CORE, NULL, &old), 0);
  CHECK_EQUAL(old.rlim_cur, 0);
  CHECK_EQUAL(prlimit(0x3ffffffe, RLIMIT_CORE, NULL, &old), -1);
  CHECK_EQUAL(errno, ESRCH);
  return succeed();
}
