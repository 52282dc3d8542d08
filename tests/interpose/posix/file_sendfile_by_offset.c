// SPDX-License-Identifier: Apache-2.0
// sendfile with an offset keeps the position; without one it moves it; into a pipe, a socket and a
// file; nothing at the end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  char name[] = "/tmp/sendXXXXXX", b[32];
  const int from = mkstemp(name);
  const int rd = open(name, O_RDONLY);
  CHECK_EQUAL(unlink(name), 0);
  memcpy(name, "/tmp/sendXXXXXX", sizeof name);
  const int to = mkstemp(name);
  CHECK_EQUAL(unlink(name), 0);
  CHECK_EQUAL(write(from, "0123456789", 10), 10);
  int fds[2], s[2];
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  off_t at = 3;
  CHECK_EQUAL(sendfile(fds[1], from, &at, 4), 4);
  CHECK_EQUAL(at, 7);
  CHECK_EQUAL(lseek(from, 0, SEEK_CUR), 10);
  CHECK_EQUAL(read(fds[0], b, sizeof b), 4);
  CHECK_EQUAL(memcmp(b, "3456", 4), 0);
  CHECK_EQUAL(sendfile(s[0], from, &at, 100), 3);
  CHECK_EQUAL(at, 10);
  CHECK_EQUAL(read(s[1], b, sizeof b), 3);
  CHECK_EQUAL(memcmp(b, "789", 3), 0);
  CHECK_EQUAL(sendfile(s[0], from, &at, 100), 0);
  CHECK_EQUAL(sendfile(s[0], from, NULL, 100), 0);
  CHECK_EQUAL(lseek(from, 8, SEEK_SET), 8);
  CHECK_EQUAL(sendfile(to, from, NULL, 100), 2);
  CHECK_EQUAL(lseek(from, 0, SEEK_CUR), 10);
  CHECK_EQUAL(lseek(to, 0, SEEK_CUR), 2);
  CHECK_EQUAL(pread(to, b, sizeof b, 0), 2);
  CHECK_EQUAL(memcmp(b, "89", 2), 0);
  CHECK_EQUAL(sendfile(rd, from, &at, 1), -1);
  CHECK_EQUAL(errno, EBADF);
  at = -1;
  const int targets[] = {to, s[0], fds[1]};
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(sendfile(targets[i], from, &at, 1), -1);
    CHECK_EQUAL(errno, EINVAL);
  }
  return succeed();
}
