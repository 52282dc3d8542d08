// SPDX-License-Identifier: Apache-2.0
// Unaccepted connections are reset when the listener closes; then its port is free, and until then
// it is taken.
#include "tcp_loopback.h"

int main(void) {
  int port = 0;
  int listener = listen_at_loopback(4, &port);
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in a = loopback_at(port);
  CHECK_EQUAL(bind(other, (const struct sockaddr*)&a, sizeof a), -1);
  CHECK_EQUAL(errno, EADDRINUSE);
  const int client = connect_to(port);
  CHECK_EQUAL(send(client, "x", 1, 0), 1);
  close(listener);
  await_level(client, POLLHUP);
  char byte;
  CHECK_EQUAL(recv(client, &byte, 1, 0), -1);
  CHECK_EQUAL(errno, ECONNRESET);
  CHECK_EQUAL(recv(client, &byte, 1, 0), 0);
  close(client);
  const int one = 1;
  CHECK_EQUAL(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
  CHECK_EQUAL(bind(other, (const struct sockaddr*)&a, sizeof a), 0);
  CHECK_EQUAL(listen(other, 1), 0);
  CHECK_EQUAL(try_connect(other, port), -1);
  CHECK_EQUAL(errno, EISCONN);
  const int again = connect_to(port);
  CHECK(accept(other, NULL, NULL) >= 0);
  close(again);
  return succeed();
}
