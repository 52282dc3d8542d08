// SPDX-License-Identifier: Apache-2.0
// msgrcv blocks until a message of its type comes, msgsnd until there is room.
#define _GNU_SOURCE
#include <sys/msg.h>

#include "../child.h"

static int queue;
static struct {
  long type;
  char text[2048];
} m;
static int receiver(int count) {
  for (int i = 0; i < count; ++i) {
    CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 2, 0), (ssize_t)sizeof m.text);
    CHECK_EQUAL(m.text[0], (char)i);
    if (i == 0) sleep_ms(20);
  }
  m.type = 1;
  return msgsnd(queue, &m, 1, 0);
}

int main(void) {
  enum { kCount = 40 };
  queue = msgget(IPC_PRIVATE, 0600);
  const pid_t p = start_process(receiver, kCount);
  for (int i = 0; i < kCount; ++i) {
    m.type = 2;
    m.text[0] = (char)i;
    CHECK_EQUAL(msgsnd(queue, &m, sizeof m.text, 0), 0);
  }
  CHECK_EQUAL(msgrcv(queue, &m, sizeof m.text, 1, 0), 1);
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(msgctl(queue, IPC_RMID, NULL), 0);
  return succeed();
}
