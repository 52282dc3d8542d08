// SPDX-License-Identifier: Apache-2.0
// A connection has one mark. A later mark replaces it: the earlier byte is then in the stream,
// unless the reader has reached it; then it is lost.
#include "tcp_urgent.h"

int main(void) {
  int e[2];
  connected_pair(e);
  const int to = e[0], from = e[1];
  send_text(to, "a1", MSG_OOB);
  await_level(from, POLLPRI);
  send_text(to, "b2", MSG_OOB);
  await_unread(from, 3);
  expect_text_with(from, "2", MSG_OOB);
  expect_text(from, "a1b");
  CHECK_EQUAL(sockatmark(from), 1);
  expect_nothing(from);

  send_text(to, "3", MSG_OOB);
  await_level(from, POLLPRI);
  expect_text_with(from, "3", MSG_OOB);
  CHECK_EQUAL(sockatmark(from), 1);
  send_text(to, "c4", MSG_OOB);
  await_level(from, POLLPRI);
  CHECK_EQUAL(sockatmark(from), 0);
  expect_text(from, "c");
  expect_text_with(from, "4", MSG_OOB);
  send_text(to, "d", 0);
  await_level(from, POLLIN);
  expect_text(from, "d");

  // Both stay in the stream.
  set_inline(from, 1);
  send_text(to, "5", MSG_OOB);
  send_text(to, "6", MSG_OOB);
  await_unread(from, 2);
  expect_text(from, "5");
  CHECK_EQUAL(sockatmark(from), 1);
  expect_text(from, "6");
  return succeed();
}
