// SPDX-License-Identifier: Apache-2.0
// Processes wait for each other's record locks in a circle: the one that closes the circle gets
// EDEADLK, the others get their locks.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>

#include "../small.h"

static int file;

static int lock_byte(int at, int command) {
  const struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
  return fcntl(file, command, &l);
}

static int member(int number, int count) {
  CHECK_EQUAL(lock_byte(number, F_SETLK), 0);
  sleep_ms(40 + 100 * number);
  const int result = lock_byte((number + 1) % count, F_SETLKW);
  return result == 0 ? 1 : errno == EDEADLK ? 2 : 3;
}

int main(void) {
  char name[] = "/tmp/circleXXXXXX";
  file = mkstemp(name);
  CHECK(file >= 0);
  CHECK_EQUAL(unlink(name), 0);
  for (int count = 2; count <= 3; ++count) {
    pid_t members[3];
    for (int i = 0; i < count; ++i) {
      members[i] = fork();
      if (members[i] == 0) _exit(member(i, count));
    }
    for (int i = 0; i < count; ++i) {
      int status = 0;
      CHECK_EQUAL(waitpid(members[i], &status, 0), members[i]);
      CHECK_EQUAL(WEXITSTATUS(status), i + 1 == count ? 2 : 1);
    }
  }
  return succeed();
}
