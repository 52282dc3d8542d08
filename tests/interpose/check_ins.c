// SPDX-License-Identifier: Apache-2.0
// Each process checks in with the node once: not again when it executes another program; here
// twice.
// solo: --check-ins
// native: no
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void become(char** arguments, char* next) {
  char* list[] = {arguments[0], next, NULL};
  execv(arguments[0], list);
}

int main(int count, char** arguments) {
  if (count == 2) {
    if (strcmp(arguments[1], "again") == 0) become(arguments, (char*)"last");
    return strcmp(arguments[1], "last") == 0 ? 5 : 1;
  }
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      become(arguments, (char*)"again");
      _exit(2);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(WEXITSTATUS(status), 5);
  }
  puts("two children");
  return 0;
}
