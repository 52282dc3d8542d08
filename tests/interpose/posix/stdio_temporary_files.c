// SPDX-License-Identifier: Apache-2.0
// mkstemp, mkostemps, mkdtemp and tmpfile: names from the template, private files, and invalid
// templates.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../small.h"

int main(void) {
  char a[] = "/tmp/aXXXXXX", b[] = "/tmp/bXXXXXX.txt", c[] = "/tmp/cXXXXXX", bad[] = "/tmp/XXXXX";
  struct stat s;
  const int f = mkstemp(a), g = mkostemps(b, 4, O_CLOEXEC);
  CHECK(f >= 0 && g >= 0);
  CHECK(strcmp(a, "/tmp/aXXXXXX") != 0 && strncmp(a, "/tmp/a", 6) == 0);
  CHECK_EQUAL(strcmp(b + strlen(b) - 4, ".txt"), 0);
  CHECK_EQUAL(fcntl(g, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(stat(a, &s), 0);
  CHECK_EQUAL(s.st_mode & 07777, 0600);
  CHECK(mkdtemp(c) == c);
  CHECK_EQUAL(stat(c, &s), 0);
  CHECK(S_ISDIR(s.st_mode));
  CHECK_EQUAL(s.st_mode & 07777, 0700);
  CHECK(mkstemp(bad) == -1 && errno == EINVAL);
  CHECK(mkdtemp(bad) == NULL && errno == EINVAL);
  char nowhere[] = "/not/there/XXXXXX";
  CHECK(mkstemp(nowhere) == -1 && errno == ENOENT);
  FILE* const t = tmpfile();
  CHECK_EQUAL(fstat(fileno(t), &s), 0);
  CHECK_EQUAL(s.st_nlink, 0);
  CHECK_EQUAL(fcntl(fileno(t), F_GETFL) & O_ACCMODE, O_RDWR);
  CHECK_EQUAL(fprintf(t, "%s", "text"), 4);
  rewind(t);
  CHECK_EQUAL(getc(t), 't');
  CHECK_EQUAL(fclose(t), 0);
  CHECK_EQUAL(unlink(a), 0);
  CHECK_EQUAL(unlink(b), 0);
  CHECK_EQUAL(rmdir(c), 0);
  return succeed();
}
