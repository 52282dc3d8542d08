// SPDX-License-Identifier: Apache-2.0
// An executed program has exactly the given environment.
#define _GNU_SOURCE
#include "../child.h"

extern char** environ;

static int goes_on(int given) {
  char again[] = "again", variable[] = "COLOUR=green";
  char* const arguments[] = {again, again, NULL};
  char *const variables[] = {variable, NULL}, *const none[] = {NULL};
  execve("/proc/self/exe", arguments, given ? variables : none);
  return 99;
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    int n = 0;
    while (environ[n] != NULL) ++n;
    if (n > 0) CHECK_EQUAL(strcmp(environ[0], "COLOUR=green"), 0);
    return n;
  }
  CHECK_EQUAL(status_of(start_process(goes_on, 0)), 0);
  CHECK_EQUAL(status_of(start_process(goes_on, 1)), 1 << 8);
  return succeed();
}
