// SPDX-License-Identifier: Apache-2.0
// exec closes the descriptors marked close-on-exec, keeps the others, and keeps the process number.
#define _GNU_SOURCE
#include <fcntl.h>

#include "../child.h"

int main(int n, char** words) {
  if (n == 4) {
    CHECK_EQUAL(fcntl(atoi(words[1]), F_GETFD), -1);
    CHECK_EQUAL(errno, EBADF);
    CHECK_EQUAL(fcntl(atoi(words[2]), F_GETFD), 0);
    CHECK_EQUAL(write(atoi(words[2]), "kept", 4), 4);
    CHECK_EQUAL(getpid(), atoi(words[3]));
    return 0;
  }
  int marked[2], kept[2];
  char b[8];
  CHECK_EQUAL(pipe2(marked, O_CLOEXEC), 0);
  CHECK_EQUAL(pipe(kept), 0);
  const pid_t p = fork();
  CHECK(p >= 0);
  if (p == 0) {
    char a[12], k[12], self[12];
    snprintf(a, sizeof a, "%d", marked[1]);
    snprintf(k, sizeof k, "%d", kept[1]);
    snprintf(self, sizeof self, "%d", getpid());
    execl("/proc/self/exe", words[0], a, k, self, NULL);
    _exit(1);
  }
  close(marked[1]);
  close(kept[1]);
  CHECK_EQUAL(read(marked[0], b, sizeof b), 0);
  CHECK_EQUAL(read(kept[0], b, sizeof b), 4);
  CHECK_EQUAL(status_of(p), 0);
  return succeed();
}
