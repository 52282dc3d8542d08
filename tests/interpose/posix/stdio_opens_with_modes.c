// SPDX-License-Identifier: Apache-2.0
// fopen's modes become open's flags; fdopen refuses a mode that the descriptor does not have;
// freopen opens another file under the same number.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../small.h"

static int flags(FILE* f) { return fcntl(fileno(f), F_GETFL) & (O_ACCMODE | O_APPEND); }

int main(void) {
  char name[] = "/tmp/modesXXXXXX", b[16];
  const int fd = mkstemp(name);
  CHECK_EQUAL(write(fd, "old", 3), 3);
  FILE* f = fopen(name, "re");
  CHECK_EQUAL(flags(f), O_RDONLY);
  CHECK_EQUAL(fcntl(fileno(f), F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(putc('x', f), EOF);
  CHECK_EQUAL(errno, EBADF);
  CHECK(ferror(f));
  clearerr(f);
  CHECK_EQUAL(getc(f), 'o');
  CHECK_EQUAL(fclose(f), 0);
  f = fopen(name, "a+");
  CHECK_EQUAL(flags(f), O_RDWR | O_APPEND);
  CHECK_EQUAL(getc(f), 'o');
  CHECK_EQUAL(fseek(f, 0, SEEK_SET), 0);
  putc('!', f);
  CHECK_EQUAL(fclose(f), 0);
  CHECK_EQUAL(pread(fd, b, sizeof b, 0), 4);
  CHECK_EQUAL(memcmp(b, "old!", 4), 0);
  CHECK(fopen(name, "wx") == NULL && errno == EEXIST);
  CHECK(fopen(name, "q") == NULL && errno == EINVAL);
  f = fopen(name, "w");
  CHECK_EQUAL(flags(f), O_WRONLY);
  CHECK_EQUAL(pread(fd, b, sizeof b, 0), 0);
  const int number = fileno(f);
  fputs("kept", f);
  f = freopen("/dev/null", "r+", f);
  CHECK_EQUAL(fileno(f), number);
  CHECK_EQUAL(flags(f), O_RDWR);
  CHECK_EQUAL(pread(fd, b, sizeof b, 0), 4);
  CHECK_EQUAL(fclose(f), 0);
  const int r = open(name, O_RDONLY);
  CHECK(fdopen(r, "w") == NULL && errno == EINVAL);
  CHECK(fdopen(77, "r") == NULL && errno == EBADF);
  f = fdopen(r, "r");
  CHECK_EQUAL(fileno(f), r);
  CHECK(fgets(b, sizeof b, f) != NULL && strcmp(b, "kept") == 0);
  CHECK_EQUAL(fclose(f), 0);
  CHECK_EQUAL(close(r), -1);
  CHECK_EQUAL(unlink(name), 0);
  CHECK(fopen(name, "r") == NULL && errno == ENOENT);
  return succeed();
}
