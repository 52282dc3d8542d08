// SPDX-License-Identifier: Apache-2.0
// script(1) runs a command at a new terminal and copies its output.
#include "../terminal.h"

#include <sys/stat.h>

int main(void) {
  int ends[2];
  char b[256] = "", *at = b;
  if (access("/usr/bin/script", X_OK) != 0) return succeed();
  CHECK_EQUAL(pipe(ends), 0);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(ends[1], 1);
    close(ends[0]);
    execl("/usr/bin/script", "script", "-qec", "test -t 1 && echo at a terminal; exit 6",
          "/dev/null", NULL);
    _exit(127);
  }
  close(ends[1]);
  ssize_t n;
  while ((n = read(ends[0], at, sizeof b - 1 - (size_t)(at - b))) > 0) at += n;
  CHECK_EQUAL(WEXITSTATUS(status_of_child(pid)), 6);
  CHECK(strstr(b, "at a terminal\r\n") != NULL);
  return succeed();
}
