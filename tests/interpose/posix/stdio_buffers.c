// SPDX-License-Identifier: Apache-2.0
// setvbuf: an unbuffered stream writes at once, a line-buffered one at a newline, a fully buffered
// one when it is full, flushed or closed; ungetc pushes bytes back.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/stat.h>

#include "../small.h"

static long length(FILE* f) {
  struct stat s;
  CHECK_EQUAL(fstat(fileno(f), &s), 0);
  return s.st_size;
}

int main(void) {
  static char room[128];
  FILE* f = tmpfile();
  CHECK_EQUAL(setvbuf(f, NULL, _IONBF, 0), 0);
  fputs("ab", f);
  CHECK_EQUAL(length(f), 2);
  CHECK_EQUAL(fclose(f), 0);
  f = tmpfile();
  CHECK_EQUAL(setvbuf(f, room, _IOLBF, sizeof room), 0);
  fputs("ab", f);
  CHECK_EQUAL(length(f), 0);
  fputs("c\n", f);
  CHECK_EQUAL(length(f), 4);
  CHECK_EQUAL(fclose(f), 0);
  f = tmpfile();
  CHECK_EQUAL(setvbuf(f, room, _IOFBF, sizeof room), 0);
  CHECK_EQUAL(__fbufsize(f), 128);
  for (int i = 0; i < 127; ++i) putc('x', f);
  CHECK_EQUAL(length(f), 0);
  CHECK_EQUAL(__fpending(f), 127);
  putc('y', f);
  putc('z', f);
  CHECK_EQUAL(length(f), 128);
  CHECK_EQUAL(fflush(f), 0);
  CHECK_EQUAL(length(f), 129);
  CHECK_EQUAL(ftell(f), 129);
  rewind(f);
  CHECK_EQUAL(getc(f), 'x');
  CHECK_EQUAL(ungetc('q', f), 'q');
  CHECK_EQUAL(ftell(f), 0);
  CHECK_EQUAL(getc(f), 'q');
  CHECK_EQUAL(fseek(f, -1, SEEK_END), 0);
  CHECK_EQUAL(getc(f), 'z');
  CHECK_EQUAL(getc(f), EOF);
  CHECK(feof(f) != 0 && ferror(f) == 0);
  CHECK_EQUAL(ungetc('r', f), 'r');
  CHECK_EQUAL(feof(f), 0);
  CHECK_EQUAL(fseek(f, -100, SEEK_SET), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(fclose(f), 0);
  return succeed();
}
