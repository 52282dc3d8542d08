// SPDX-License-Identifier: Apache-2.0
// A child shares the open file: its reads move the parent's position, its status flags are the
// parent's; files that each opens are separate.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/sharedXXXXXX", b[4];
  const int f = mkstemp(name), own = open(name, O_RDONLY);
  CHECK_EQUAL(write(f, "0123456789", 10), 10);
  CHECK_EQUAL(lseek(f, 2, SEEK_SET), 2);
  const pid_t child = fork();
  if (child == 0) {
    const int again = open(name, O_RDONLY);
    if (read(f, b, 3) != 3 || memcmp(b, "234", 3) != 0) _exit(1);
    if (read(again, b, 3) != 3 || memcmp(b, "012", 3) != 0) _exit(2);
    if (fcntl(f, F_SETFL, O_APPEND) != 0 || fcntl(f, F_SETFD, FD_CLOEXEC) != 0) _exit(3);
    _exit(write(f, "x", 1) == 1 ? 42 : 4);
  }
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
  CHECK_EQUAL(lseek(f, 0, SEEK_CUR), 11);
  CHECK_EQUAL(fcntl(f, F_GETFL) & O_APPEND, O_APPEND);
  CHECK_EQUAL(fcntl(f, F_GETFD), 0);
  CHECK_EQUAL(lseek(own, 0, SEEK_CUR), 0);
  CHECK_EQUAL(pread(own, b, 1, 10), 1);
  CHECK_EQUAL(b[0], 'x');
  CHECK_EQUAL(unlink(name), 0);
  return succeed();
}
