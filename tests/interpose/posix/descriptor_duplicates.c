// SPDX-License-Identifier: Apache-2.0
// dup, dup2, dup3 and F_DUPFD: the lowest number, shared position and status flags, a separate
// close-on-exec flag, and the errors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

int main(void) {
  FILE* const t = tmpfile();
  const int f = fileno(t), base = dup(f);
  CHECK_EQUAL(base, f + 1);
  CHECK_EQUAL(write(f, "abcd", 4), 4);
  CHECK_EQUAL(lseek(base, 0, SEEK_CUR), 4);
  CHECK_EQUAL(fcntl(base, F_SETFL, O_APPEND), 0);
  CHECK_EQUAL(fcntl(f, F_GETFL) & O_APPEND, O_APPEND);
  CHECK_EQUAL(fcntl(f, F_DUPFD, 50), 50);
  CHECK_EQUAL(fcntl(f, F_DUPFD, 50), 51);
  CHECK_EQUAL(fcntl(f, F_DUPFD_CLOEXEC, 50), 52);
  CHECK_EQUAL(fcntl(52, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(fcntl(51, F_GETFD), 0);
  CHECK_EQUAL(dup2(52, 53), 53);
  CHECK_EQUAL(fcntl(53, F_GETFD), 0);
  CHECK_EQUAL(dup2(53, 53), 53);
  CHECK_EQUAL(dup3(f, 54, O_CLOEXEC), 54);
  CHECK_EQUAL(fcntl(54, F_GETFD), FD_CLOEXEC);
  FAILS(dup3(f, f, 0), EINVAL);
  FAILS(dup3(f, 55, O_NONBLOCK), EINVAL);
  FAILS(dup2(77, 78), EBADF);
  FAILS(dup2(77, 77), EBADF);
  FAILS(dup2(f, -1), EBADF);
  FAILS(dup(-1), EBADF);
  FAILS(fcntl(f, F_DUPFD, -1), EINVAL);
  FAILS(fcntl(77, F_GETFD), EBADF);
  FAILS(fcntl(f, 9999), EINVAL);
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 60;
  CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
  FAILS(dup2(f, 60), EBADF);
  FAILS(fcntl(f, F_DUPFD, 60), EINVAL);
  CHECK_EQUAL(dup2(f, 59), 59);
  FAILS(fcntl(f, F_DUPFD, 59), EMFILE);
  FAILS(close(77), EBADF);
  return succeed();
}
