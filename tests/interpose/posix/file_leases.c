// SPDX-License-Identifier: Apache-2.0
// A lease of a file of one's own reads back, is refused while others have the file open for writing
// and is given back.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/leaseXXXXXX";
  const int w = mkstemp(name);
  const int f = open(name, O_RDONLY);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(fcntl(f, F_GETLEASE), F_UNLCK);
  CHECK_EQUAL(fcntl(f, F_SETLEASE, F_RDLCK), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(close(w), 0);
  CHECK_EQUAL(fcntl(f, F_SETLEASE, F_RDLCK), 0);
  CHECK_EQUAL(fcntl(f, F_GETLEASE), F_RDLCK);
  CHECK_EQUAL(fcntl(f, F_SETLEASE, 77), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(fcntl(f, F_SETLEASE, F_UNLCK), 0);
  CHECK_EQUAL(fcntl(f, F_GETLEASE), F_UNLCK);
  return succeed();
}
