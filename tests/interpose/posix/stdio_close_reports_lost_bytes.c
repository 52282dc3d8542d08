// SPDX-License-Identifier: Apache-2.0
// fclose fails if the last bytes of a stream cannot be written, and pclose if the command did not
// read them.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/stat.h>

#include "../small.h"

static void fails_beyond_the_limit(const char* name) {
  struct stat s;
  FILE* f = fopen(name, "w");
  CHECK(f != NULL);
  CHECK_EQUAL(fwrite("12345678", 1, 8, f), 8);
  errno = 0;
  CHECK_EQUAL(fclose(f), EOF);
  CHECK_EQUAL(errno, EFBIG);
  CHECK_EQUAL(stat(name, &s), 0);
  CHECK_EQUAL(s.st_size, 4);
}

int main(void) {
  char name[] = "/tmp/lostXXXXXX";
  const int fd = mkstemp(name);
  CHECK(fd >= 0);
  CHECK_EQUAL(close(fd), 0);
  struct rlimit limit;
  CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = 4;
  signal(SIGXFSZ, SIG_IGN);
  CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
  fails_beyond_the_limit(name);
  limit.rlim_cur = limit.rlim_max;
  CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
  FILE* good = fopen(name, "w");
  CHECK_EQUAL(fwrite("12345678", 1, 8, good), 8);
  CHECK_EQUAL(fclose(good), 0);
  CHECK_EQUAL(unlink(name), 0);

  signal(SIGPIPE, SIG_IGN);
  int told[2];
  CHECK_EQUAL(pipe(told), 0);
  char command[64], byte;
  snprintf(command, sizeof command, "exec <&- %d>&-", told[1]);
  FILE* f = popen(command, "w");
  CHECK(f != NULL);
  CHECK_EQUAL(close(told[1]), 0);
  CHECK_EQUAL(read(told[0], &byte, 1), 0);  // its end of the other pipe is closed, too
  CHECK_EQUAL(fwrite("12345678", 1, 8, f), 8);
  CHECK_EQUAL(pclose(f), -1);
  return succeed();
}
