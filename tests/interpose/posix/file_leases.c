// SPDX-License-Identifier: Apache-2.0
// native: no
// Leases are refused, as by a file system without them: the kernel would signal a lease break at no
// turn.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/leaseXXXXXX";
  const int w = mkstemp(name);
  const int f = open(name, O_RDONLY);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(close(w), 0);
  CHECK_EQUAL(fcntl(f, F_GETLEASE), F_UNLCK);
  CHECK(fcntl(f, F_SETLEASE, F_RDLCK) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_fcntl, f, F_SETLEASE, F_WRLCK) == -1 && errno == EINVAL);
  CHECK(fcntl(f, F_SETLEASE, F_UNLCK) == -1 && errno == EINVAL);
  CHECK_EQUAL(fcntl(f, F_GETLEASE), F_UNLCK);
  return succeed();
}
