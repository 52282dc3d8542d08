// SPDX-License-Identifier: Apache-2.0
// An urgent byte is not part of the stream: reads stop at its mark and continue after it,
// recv(MSG_OOB) returns it once, and poll reports POLLPRI until then.
#include "tcp_urgent.h"

int main(void) {
  enum { kAll = POLLIN | POLLPRI };
  int e[2];
  connected_pair(e);
  const int to = e[0], from = e[1];
  no_urgent_byte(from);
  CHECK_EQUAL(sockatmark(from), 0);

  send_text(to, "ab!", MSG_OOB);
  send_text(to, "cd", 0);
  await_level(from, kAll);
  CHECK_EQUAL(unread(from), 2);
  CHECK_EQUAL(sockatmark(from), 0);
  expect_text_with(from, "!", MSG_OOB | MSG_PEEK);
  CHECK_EQUAL(level_of(from, kAll), kAll);
  expect_text_with(from, "!", MSG_OOB);
  CHECK_EQUAL(level_of(from, kAll), POLLIN);
  no_urgent_byte(from);
  expect_text_with(from, "ab", MSG_PEEK);
  expect_text(from, "ab");
  CHECK_EQUAL(sockatmark(from), 1);
  CHECK_EQUAL(unread(from), 0);
  CHECK_EQUAL(level_of(from, kAll), POLLIN);  // the bytes after the mark
  expect_text_with(from, "cd", MSG_PEEK);
  CHECK_EQUAL(sockatmark(from), 1);
  expect_text(from, "cd");
  CHECK_EQUAL(sockatmark(from), 0);
  expect_nothing(from);

  // Alone, it makes nothing readable. A read that reaches it skips it, and it is lost.
  send_text(to, "?", MSG_OOB);
  await_level(from, POLLPRI);
  CHECK_EQUAL(level_of(from, kAll), POLLPRI);
  CHECK_EQUAL(sockatmark(from), 1);
  expect_nothing(from);
  CHECK_EQUAL(sockatmark(from), 0);
  CHECK_EQUAL(level_of(from, kAll), 0);
  no_urgent_byte(from);

  // MSG_WAITALL ends at the mark; so do several buffers.
  send_text(to, "123", 0);
  send_text(to, "!", MSG_OOB);
  send_text(to, "45", 0);
  await_level(from, kAll);
  char one[2], two[8];
  struct iovec v[] = {{one, sizeof one}, {two, sizeof two}};
  struct msghdr m;
  memset(&m, 0, sizeof m);
  m.msg_iov = v;
  m.msg_iovlen = 2;
  CHECK_EQUAL(recvmsg(from, &m, MSG_WAITALL), 3);
  CHECK_EQUAL(m.msg_flags & MSG_OOB, 0);
  CHECK(memcmp(one, "12", 2) == 0 && two[0] == '3');
  CHECK_EQUAL(recvmsg(from, &m, MSG_OOB), 1);
  CHECK_EQUAL(m.msg_flags & MSG_OOB, MSG_OOB);
  CHECK_EQUAL(one[0], '!');
  expect_text(from, "45");

  // The urgent byte is still unfetched when the end of the stream arrives: a read skips it.
  send_text(to, "x!", MSG_OOB);
  CHECK_EQUAL(shutdown(to, SHUT_WR), 0);
  await_level(from, POLLRDHUP | POLLPRI);
  expect_text(from, "x");
  expect_text(from, "");
  return succeed();
}
