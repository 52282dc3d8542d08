// SPDX-License-Identifier: Apache-2.0
// fmemopen, open_memstream and fopencookie make streams of memory and of the program's functions;
// getline and getdelim extend their buffer.
#define _GNU_SOURCE
#include "../small.h"

static char kept[64];
static size_t used;
static int ended;

static ssize_t keep(void* cookie, const char* b, size_t n) {
  CHECK(cookie == kept && used + n <= sizeof kept);
  memcpy(kept + used, b, n);
  used += n;
  return (ssize_t)n;
}
static ssize_t give(void* cookie, char* b, size_t n) {
  size_t* const left = cookie;
  if (n > *left) n = *left;
  memset(b, 'g', n);
  *left -= n;
  return (ssize_t)n;
}
static int end(void* cookie) {
  (void)cookie;
  return ++ended, 0;
}

int main(void) {
  char b[16] = "one\ntwo\nthree", *line = NULL, *made = NULL;
  size_t room = 0, size = 0, left = 5000;
  FILE* f = fmemopen(b, 13, "r");
  CHECK_EQUAL(getline(&line, &room, f), 4);
  CHECK_EQUAL(getdelim(&line, &room, 'w', f), 2);
  CHECK_EQUAL(getline(&line, &room, f), 2);
  CHECK_EQUAL(getline(&line, &room, f), 5);
  CHECK_EQUAL(strcmp(line, "three"), 0);
  CHECK_EQUAL(getline(&line, &room, f), -1);
  CHECK(feof(f));
  CHECK_EQUAL(fileno(f), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(fclose(f), 0);
  f = fmemopen(b, 4, "w");
  CHECK(fputs("ab", f) >= 0);
  CHECK_EQUAL(fclose(f), 0);
  CHECK_EQUAL(memcmp(b, "ab\0\ntwo", 7), 0);
  f = open_memstream(&made, &size);
  fprintf(f, "%d-%s", 42, "x");
  CHECK_EQUAL(fflush(f), 0);
  CHECK(size == 4 && strcmp(made, "42-x") == 0);
  CHECK_EQUAL(fseek(f, 6, SEEK_SET), 0);
  putc('e', f);
  CHECK_EQUAL(fclose(f), 0);
  CHECK(size == 7 && memcmp(made, "42-x\0\0e", 7) == 0);
  free(made);
  f = fopencookie(kept, "w", (cookie_io_functions_t){NULL, keep, NULL, end});
  fprintf(f, "cookie");
  CHECK_EQUAL(used, 0);
  CHECK_EQUAL(fclose(f), 0);
  CHECK(used == 6 && ended == 1 && memcmp(kept, "cookie", 6) == 0);
  f = fopencookie(&left, "r", (cookie_io_functions_t){give, NULL, NULL, end});
  CHECK_EQUAL(getline(&line, &room, f), 5000);
  CHECK(room > 5000);
  CHECK_EQUAL(fclose(f), 0);
  free(line);
  return succeed();
}
