// SPDX-License-Identifier: Apache-2.0
// write, writev, sendmsg, sendfile, dprintf and stdio put their bytes into a stream in the order of
// the calls.
#define _GNU_SOURCE
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../small.h"

int main(void) {
  int fds[2];
  char got[64] = "";
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  FILE* file = tmpfile();
  fputs("file ", file);
  fflush(file);
  struct iovec v[2] = {{"wri", 3}, {"tev ", 4}};
  struct msghdr m;
  memset(&m, 0, sizeof m);
  m.msg_iov = v;
  m.msg_iovlen = 2;
  off_t at = 0;
  CHECK_EQUAL(write(fds[1], "write ", 6), 6);
  CHECK_EQUAL(writev(fds[1], v, 2), 7);
  CHECK_EQUAL(sendmsg(fds[1], &m, 0), 7);
  CHECK_EQUAL(sendfile(fds[1], fileno(file), &at, 5), 5);
  dprintf(fds[1], "dprintf ");
  FILE* stream = fdopen(fds[1], "w");
  fputs("stdio", stream);
  fclose(stream);
  size_t n = 0;
  ssize_t r;
  while ((r = read(fds[0], got + n, sizeof got - n)) > 0) n += (size_t)r;
  printf("%s\n", got);
  return succeed();
}
