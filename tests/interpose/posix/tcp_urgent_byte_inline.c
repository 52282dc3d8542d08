// SPDX-License-Identifier: Apache-2.0
// With SO_OOBINLINE an urgent byte is read in its place: a read stops before it, SIOCATMARK reports
// that it is next, and the next read begins with it.
#include "tcp_urgent.h"

int main(void) {
  enum { kAll = POLLIN | POLLPRI };
  int e[2];
  connected_pair(e);
  const int to = e[0], from = e[1];
  set_inline(from, 1);
  send_text(to, "ab!", MSG_OOB);
  send_text(to, "cd", 0);
  await_unread(from, 5);
  CHECK_EQUAL(level_of(from, kAll), kAll);
  no_urgent_byte(from);
  CHECK_EQUAL(sockatmark(from), 0);
  expect_text(from, "ab");
  CHECK_EQUAL(sockatmark(from), 1);
  CHECK_EQUAL(unread(from), 3);
  CHECK_EQUAL(level_of(from, kAll), kAll);
  expect_text_with(from, "!cd", MSG_PEEK);
  CHECK_EQUAL(sockatmark(from), 1);
  char byte;
  CHECK_EQUAL(read(from, &byte, 1), 1);
  CHECK_EQUAL(byte, '!');
  CHECK_EQUAL(sockatmark(from), 0);
  CHECK_EQUAL(level_of(from, kAll), POLLIN);
  expect_text(from, "cd");

  // It may be set and cleared while a byte waits.
  send_text(to, "x!", MSG_OOB);
  await_unread(from, 2);
  set_inline(from, 0);
  CHECK_EQUAL(unread(from), 1);
  expect_text_with(from, "!", MSG_OOB);
  set_inline(from, 1);
  CHECK_EQUAL(level_of(from, kAll), POLLIN);
  expect_text(from, "x");
  expect_text(from, "!");

  // Accepted sockets inherit it from their listener, connected ones keep it from before.
  int port = 0;
  const int listener = listen_at_loopback(1, &port);
  set_inline(listener, 1);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  set_inline(client, 1);
  CHECK_EQUAL(try_connect(client, port), 0);
  const int served = accept(listener, NULL, NULL);
  CHECK(served >= 0);
  send_text(client, "1", MSG_OOB);
  send_text(served, "2", MSG_OOB);
  await_level(served, kAll);
  await_level(client, kAll);
  expect_text(served, "1");
  expect_text(client, "2");
  return succeed();
}
