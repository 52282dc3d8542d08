// SPDX-License-Identifier: Apache-2.0
// Several processes write whole lines into a FIFO; the reader gets them all, then the end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "../child.h"

static char path[80];
static int writer(int which) {
  const int fd = open(path, O_WRONLY);
  char line[10];
  memset(line, 'a' + which, sizeof line);
  for (int i = 0; i < 10; ++i) CHECK_EQUAL(write(fd, line, sizeof line), sizeof line);
  return 0;
}

int main(void) {
  pid_t p[3];
  int count[3] = {0};
  char line[10];
  snprintf(path, sizeof path, "/tmp/%s-%d", program_invocation_short_name, getpid());
  unlink(path);  // left by a killed run
  CHECK_EQUAL(mkfifo(path, 0600), 0);
  for (int i = 0; i < 3; ++i) p[i] = start_process(writer, i);
  // There may be no writer for a moment: the end may come more than once.
  for (int lines = 0; lines < 30;) {
    const int fd = open(path, O_RDONLY);
    for (ssize_t n; (n = read(fd, line, sizeof line)) != 0; ++lines) {
      CHECK_EQUAL(n, sizeof line);
      for (int k = 1; k < 10; ++k) CHECK_EQUAL(line[k], line[0]);
      ++count[line[0] - 'a'];
    }
    if (lines == 30) close(fd);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(count[i], 10);
    CHECK_EQUAL(status_of(p[i]), 0);
  }
  CHECK_EQUAL(unlink(path), 0);
  return succeed();
}
