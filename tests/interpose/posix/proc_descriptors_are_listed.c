// SPDX-License-Identifier: Apache-2.0
// /proc/self/fd lists the open descriptors and nothing else.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>

#include "../small.h"

int main(void) {
  int fds[2], listed = 0, open_ones = 0;
  CHECK_EQUAL(pipe(fds), 0);
  DIR* const d = opendir("/proc/self/fd");
  for (const struct dirent* i; (i = readdir(d)) != NULL;) {
    if (i->d_name[0] == '.') continue;
    const int fd = atoi(i->d_name);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    ++listed;
  }
  for (int fd = 0; fd < 1000; ++fd) open_ones += fcntl(fd, F_GETFD) >= 0;
  CHECK_EQUAL(closedir(d), 0);
  CHECK_EQUAL(listed, open_ones);
  return succeed();
}
