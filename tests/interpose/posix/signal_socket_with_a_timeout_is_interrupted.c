// SPDX-License-Identifier: Apache-2.0
// recv continues after a handler with SA_RESTART, unless the socket has a time-out; so does accept.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "../small.h"

static void* write_later(void* fd) {
  sleep_ms(50);
  CHECK_EQUAL(write(*(int*)fd, "x", 1), 1);
  return NULL;
}

int main(void) {
  int fds[2];
  char byte;
  const struct timeval long_time = {60, 0};
  struct Interruptions rings;
  CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  begin_interruptions(&rings, SA_RESTART);
  const pthread_t t = start(write_later, &fds[1]);
  CHECK_EQUAL(recv(fds[0], &byte, 1, 0), 1);
  join(t);
  CHECK_EQUAL(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time), 0);
  CHECK_EQUAL(recv(fds[0], &byte, 1, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(read(fds[0], &byte, 1), -1);
  CHECK_EQUAL(errno, EINTR);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  const struct sockaddr_un none = {.sun_family = AF_UNIX};
  CHECK_EQUAL(bind(listener, (const struct sockaddr*)&none, sizeof none.sun_family), 0);
  CHECK_EQUAL(listen(listener, 1), 0);
  CHECK_EQUAL(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time), 0);
  CHECK_EQUAL(accept(listener, NULL, NULL), -1);
  CHECK_EQUAL(errno, EINTR);
  end_interruptions(&rings);
  return succeed();
}
