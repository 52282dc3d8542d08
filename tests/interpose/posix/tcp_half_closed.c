// SPDX-License-Identifier: Apache-2.0
// shutdown of one direction leaves the other open; poll's result at each step; when both are shut
// down the connection has no peer any more.
#include "tcp_loopback.h"

int main(void) {
  enum { kAll = POLLIN | POLLOUT | POLLRDHUP };
  int e[2];
  char byte;
  connected_pair(e);
  CHECK_EQUAL(level_of(e[0], kAll), POLLOUT);
  CHECK_EQUAL(shutdown(e[1], SHUT_WR), 0);
  await_level(e[0], POLLRDHUP);
  CHECK_EQUAL(level_of(e[0], kAll), POLLIN | POLLOUT | POLLRDHUP);
  CHECK_EQUAL(level_of(e[1], kAll), POLLOUT);
  CHECK_EQUAL(send(e[1], "x", 1, MSG_NOSIGNAL), -1);
  CHECK_EQUAL(errno, EPIPE);
  CHECK_EQUAL(recv(e[0], &byte, 1, 0), 0);
  CHECK_EQUAL(send(e[0], "abc", 3, 0), 3);
  CHECK_EQUAL(recv(e[1], &byte, 1, 0), 1);
  CHECK_EQUAL(byte, 'a');
  CHECK_EQUAL(shutdown(e[0], SHUT_WR), 0);
  await_level(e[1], POLLHUP);
  CHECK_EQUAL(level_of(e[0], kAll), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
  CHECK_EQUAL(level_of(e[1], kAll), POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
  CHECK_EQUAL(recv(e[1], &byte, 1, 0), 1);
  CHECK_EQUAL(recv(e[1], &byte, 1, 0), 1);
  CHECK_EQUAL(recv(e[1], &byte, 1, 0), 0);
  CHECK_EQUAL(shutdown(e[0], SHUT_RDWR), -1);
  CHECK_EQUAL(errno, ENOTCONN);
  struct sockaddr_in a;
  socklen_t n = sizeof a;
  CHECK_EQUAL(getpeername(e[0], (struct sockaddr*)&a, &n), -1);
  CHECK_EQUAL(errno, ENOTCONN);
  return succeed();
}
