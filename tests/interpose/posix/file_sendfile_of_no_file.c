// SPDX-License-Identifier: Apache-2.0
// sendfile reads from files: a pipe or a socket as the source is refused; with an offset the reason
// is that it has no position.
#define _GNU_SOURCE
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  int fds[2], s[2];
  FILE* const file = tmpfile();
  CHECK(file != NULL);
  const int to = fileno(file);
  off_t at = 0;
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
  CHECK_EQUAL(write(s[0], "x", 1), 1);
  CHECK_EQUAL(sendfile(to, s[1], NULL, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(sendfile(to, s[1], &at, 1), -1);
  CHECK_EQUAL(errno, ESPIPE);
  CHECK_EQUAL(sendfile(to, fds[0], &at, 1), -1);
  CHECK_EQUAL(errno, ESPIPE);
  return succeed();
}
