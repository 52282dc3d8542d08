// SPDX-License-Identifier: Apache-2.0
// Writing to a connection whose peer has closed: the first write succeeds and causes a reset, the
// next one is a broken pipe. Closing with unread bytes is a reset at once.
#include "tcp_loopback.h"

static volatile sig_atomic_t pipes;
static void on_pipe(int signo) { pipes += signo == SIGPIPE; }

int main(void) {
  enum { kAll = POLLIN | POLLOUT | POLLRDHUP };
  handle(SIGPIPE, on_pipe, 0);
  int e[2];
  char byte;
  connected_pair(e);
  close(e[1]);
  await_level(e[0], POLLRDHUP);
  CHECK_EQUAL(level_of(e[0], kAll), POLLIN | POLLOUT | POLLRDHUP);
  CHECK_EQUAL(send(e[0], "x", 1, 0), 1);
  await_level(e[0], POLLHUP);
  CHECK_EQUAL(level_of(e[0], kAll), POLLIN | POLLOUT | POLLRDHUP | POLLERR | POLLHUP);
  CHECK_EQUAL(send(e[0], "x", 1, 0), -1);
  CHECK_EQUAL(errno, EPIPE);
  CHECK_EQUAL(pipes, 1);
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), 0);
  CHECK_EQUAL(level_of(e[0], kAll), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
  CHECK_EQUAL(send(e[0], "x", 1, MSG_NOSIGNAL), -1);
  CHECK_EQUAL(pipes, 1);
  close(e[0]);

  connected_pair(e);
  CHECK_EQUAL(send(e[0], "unread", 6, 0), 6);
  CHECK_EQUAL(send(e[1], "ab", 2, 0), 2);
  await_level(e[1], POLLIN);
  close(e[1]);
  await_level(e[0], POLLHUP);
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), 1);  // bytes received before
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), 1);
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), 0);
  close(e[0]);

  connected_pair(e);
  const struct linger hard = {1, 0};
  CHECK_EQUAL(setsockopt(e[1], SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
  close(e[1]);
  await_level(e[0], POLLHUP);
  CHECK_EQUAL(send(e[0], "x", 1, MSG_NOSIGNAL), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  return succeed();
}
