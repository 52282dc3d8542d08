// SPDX-License-Identifier: Apache-2.0
// pidfd_getfd returns a descriptor for a file that another process has open: a pipe, a file and a
// TCP socket; its errors.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tcp_loopback.h"

static int take(int process, int fd) { return (int)syscall(SYS_pidfd_getfd, process, fd, 0); }

int main(void) {
  int told[2], ends[2];
  char b[8];
  int numbers[3];
  CHECK_EQUAL(pipe(told), 0);
  CHECK_EQUAL(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char name[] = "/tmp/takenXXXXXX";
    int s[2], p[2];
    connected_pair(s);
    CHECK_EQUAL(pipe(p), 0);
    CHECK_EQUAL(write(s[0], "tcp", 3), 3);
    CHECK_EQUAL(write(p[1], "pipe", 4), 4);
    await_level(s[1], POLLIN);
    numbers[0] = s[1];
    numbers[1] = p[0];
    numbers[2] = mkstemp(name);
    CHECK_EQUAL(unlink(name), 0);
    CHECK_EQUAL(write(numbers[2], "file", 4), 4);
    CHECK_EQUAL(write(told[1], numbers, sizeof numbers), sizeof numbers);
    CHECK_EQUAL(read(ends[0], b, 1), 1);
    _exit(0);
  }
  CHECK_EQUAL(read(told[0], numbers, sizeof numbers), sizeof numbers);
  const int process = (int)syscall(SYS_pidfd_open, child, 0);
  CHECK(process >= 0);
  const int s = take(process, numbers[0]);
  CHECK_EQUAL(s, process + 1);
  CHECK_EQUAL(fcntl(s, F_GETFD), FD_CLOEXEC);
  CHECK_EQUAL(recv(s, b, sizeof b, 0), 3);
  CHECK_EQUAL(memcmp(b, "tcp", 3), 0);
  CHECK_EQUAL(read(take(process, numbers[1]), b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "pipe", 4), 0);
  CHECK_EQUAL(pread(take(process, numbers[2]), b, sizeof b, 0), 4);
  CHECK_EQUAL(memcmp(b, "file", 4), 0);
  CHECK(take(process, 200) == -1 && errno == EBADF);
  CHECK(take(told[0], 0) == -1 && errno == EBADF);
  CHECK(syscall(SYS_pidfd_getfd, process, 0, 1) == -1 && errno == EINVAL);
  CHECK_EQUAL(write(ends[1], "x", 1), 1);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  return succeed();
}
