// SPDX-License-Identifier: Apache-2.0
// msgrcv takes the first message, the first of a type, or the one of the lowest type up to a limit.
#define _GNU_SOURCE
#include <sys/msg.h>

#include "../small.h"

static struct {
  long type;
  char text[8];
} m;
static int queue;
static void send_one(long type, char c) {
  m.type = type;
  m.text[0] = c;
  CHECK_EQUAL(msgsnd(queue, &m, 1, 0), 0);
}

int main(void) {
  queue = msgget(IPC_PRIVATE, 0600);
  CHECK(queue >= 0);
  send_one(5, 'a');
  send_one(3, 'b');
  send_one(4, 'c');
  send_one(5, 'd');
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 4, 0), 1);
  CHECK_EQUAL(m.text[0], 'c');
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, -4, 0), 1);
  CHECK_EQUAL(m.text[0], 'b');
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 9, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, ENOMSG);
  CHECK_EQUAL(msgrcv(queue, &m, 0, 0, 0), -1);
  CHECK_EQUAL(errno, E2BIG);
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 0, 0), 1);
  CHECK_EQUAL(m.text[0], 'a');
  CHECK_EQUAL(m.type, 5);
  CHECK_EQUAL(msgctl(queue, IPC_RMID, NULL), 0);
  return succeed();
}
