// SPDX-License-Identifier: Apache-2.0
// A connection has one mark. A later mark replaces it: the earlier byte is then in the stream,
// unless the reader has reached it; then it is lost.
#include "tcp_urgent.h"

int main(void) {
  int e[2];
  connected_pair(e);
  const int to = e[0], from = e[1];
  say(to, "a1", MSG_OOB);
  await_level(from, POLLPRI);
  say(to, "b2", MSG_OOB);
  await_unread(from, 3);
  hear_with(from, "2", MSG_OOB);
  hear(from, "a1b");
  CHECK_EQUAL(sockatmark(from), 1);
  hear_nothing(from);

  say(to, "3", MSG_OOB);
  await_level(from, POLLPRI);
  hear_with(from, "3", MSG_OOB);
  CHECK_EQUAL(sockatmark(from), 1);
  say(to, "c4", MSG_OOB);
  await_level(from, POLLPRI);
  CHECK_EQUAL(sockatmark(from), 0);
  hear(from, "c");
  hear_with(from, "4", MSG_OOB);
  say(to, "d", 0);
  await_level(from, POLLIN);
  hear(from, "d");

  // Both stay in the stream.
  set_inline(from, 1);
  say(to, "5", MSG_OOB);
  say(to, "6", MSG_OOB);
  await_unread(from, 2);
  hear(from, "5");
  CHECK_EQUAL(sockatmark(from), 1);
  hear(from, "6");
  return succeed();
}
