// SPDX-License-Identifier: Apache-2.0
// execl, execle, execlp, execvpe, fexecve and execveat run the program with the given arguments and
// environment; the process keeps its number.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

extern char** environ;
static char own[] = "again", argument[] = "argument", variable[] = "COLOUR=green";
static char* const arguments[] = {own, argument, NULL};
static char* const variables[] = {variable, NULL};

static int goes_on(int way) {
  char number[20];
  snprintf(number, sizeof number, "%d", getpid());
  setenv("PID", number, 1);
  setenv("COLOUR", "red", 1);
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  switch (way) {
    case 0:
      execl("/proc/self/exe", own, argument, NULL);
      break;
    case 1:
      execle("/proc/self/exe", own, argument, NULL, variables);
      break;
    case 2:
      execlp("/proc/self/exe", own, argument, NULL);
      break;
    case 3:
      execvpe("/proc/self/exe", arguments, variables);
      break;
    case 4:
      fexecve(fd, arguments, variables);
      break;
    case 5:
      execveat(fd, "", arguments, environ, AT_EMPTY_PATH);
      break;
  }
  return 99;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    CHECK_EQUAL(strcmp(argv[0], own), 0);
    CHECK_EQUAL(strcmp(argv[1], argument), 0);
    CHECK_EQUAL(argc, 2);
    CHECK(getenv("COLOUR") != NULL);
    if (strcmp(getenv("COLOUR"), "green") == 0) {
      CHECK(getenv("PID") == NULL);
      return 8;
    }
    CHECK(getenv("PID") != NULL);
    CHECK_EQUAL(atoi(getenv("PID")), getpid());
    return 7;
  }
  const int wanted[] = {7, 8, 7, 8, 8, 7};
  for (int i = 0; i < 6; ++i) CHECK_EQUAL(status_of(start_process(goes_on, i)), wanted[i] << 8);
  return succeed();
}
