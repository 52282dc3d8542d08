// SPDX-License-Identifier: Apache-2.0
// /proc/self/fd has a link for each open descriptor to its file; fdinfo contains the position.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "../small.h"

static int starts(int fd, const char* with) {
  char name[64], b[256];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(name, b, sizeof b - 1);
  CHECK(n > 0);
  b[n] = 0;
  return strncmp(b, with, strlen(with)) == 0;
}

int main(void) {
  int fds[2];
  char name[64], line[128];
  const int null = open("/dev/null", O_RDWR | O_APPEND);
  CHECK_EQUAL(pipe(fds), 0);
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), e = eventfd(0, 0), f = open("/etc/passwd", 0);
  CHECK(starts(null, "/dev/null") && starts(fds[0], "pipe:[") && starts(fds[1], "pipe:["));
  CHECK(starts(s, "socket:[") && starts(e, "anon_inode:[eventfd]") && starts(f, "/etc/passwd"));
  CHECK_EQUAL(lseek(f, 5, SEEK_SET), 5);
  snprintf(name, sizeof name, "/proc/self/fdinfo/%d", f);
  FILE* const info = fopen(name, "r");
  CHECK(info != NULL && fgets(line, sizeof line, info) != NULL);
  CHECK_EQUAL(strcmp(line, "pos:\t5\n"), 0);
  CHECK_EQUAL(fclose(info), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", f);
  CHECK_EQUAL(access(name, R_OK), 0);
  return succeed();
}
