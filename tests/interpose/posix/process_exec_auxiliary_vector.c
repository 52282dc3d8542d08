// SPDX-License-Identifier: Apache-2.0
// The auxiliary vector follows the null that ends the environment: Go's runtime reads it there. In
// the first program, and in programs executed with all or little environment.
#define _GNU_SOURCE
#include <sys/auxv.h>

#include "../child.h"

extern char** environ;

static void check_vector(void) {
  char** end = environ;
  while (*end != NULL) ++end;
  unsigned long page = 0, headers = 0;
  for (const unsigned long* pair = (unsigned long*)(end + 1); pair[0] != AT_NULL; pair += 2) {
    if (pair[0] == AT_PAGESZ) page = pair[1];
    if (pair[0] == AT_PHDR) headers = pair[1];
  }
  CHECK_EQUAL(page, sysconf(_SC_PAGESIZE));
  CHECK_EQUAL(headers, getauxval(AT_PHDR));
}

static int goes_on(int given) {
  char again[] = "again", variable[] = "COLOUR=green";
  char* const arguments[] = {again, again, NULL};
  char *const one[] = {variable, NULL}, *const none[] = {NULL};
  char* const* environments[] = {environ, one, none};
  execve("/proc/self/exe", arguments, environments[given]);
  return 99;
}

int main(int argc, char** argv) {
  (void)argv;
  check_vector();
  if (argc > 1) return 0;
  for (int given = 0; given < 3; ++given) {
    CHECK_EQUAL(status_of(start_process(goes_on, given)), 0);
  }
  return succeed();
}
