// SPDX-License-Identifier: Apache-2.0
// msgsnd and msgrcv: invalid types and sizes, truncated messages, all types but one, a full queue,
// a removed one.
#define _GNU_SOURCE
#include <sys/msg.h>

#include "../small.h"

static struct {
  long type;
  char text[16];
} m;

static int send(int id, long type, size_t size) {
  m.type = type;
  memset(m.text, '0' + (char)type, sizeof m.text);
  return msgsnd(id, &m, size, IPC_NOWAIT);
}

int main(void) {
  CHECK_EQUAL(msgget(0x43524e02, 0600), -1);
  CHECK_EQUAL(errno, ENOENT);
  const int id = msgget(IPC_PRIVATE, 0600);
  CHECK(id >= 0);
  CHECK_EQUAL(send(id, 0, 4), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(send(id, -1, 4), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(msgrcv(id, &m, 16, 0, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, ENOMSG);
  for (int type = 1; type <= 4; ++type) CHECK_EQUAL(send(id, type, 8), 0);
  CHECK_EQUAL(msgrcv(id, &m, 4, 2, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, E2BIG);
  CHECK_EQUAL(msgrcv(id, &m, 4, 2, IPC_NOWAIT | MSG_NOERROR), 4);
  CHECK_EQUAL(m.text[3], '2');
  CHECK_EQUAL(msgrcv(id, &m, 16, 1, IPC_NOWAIT | MSG_EXCEPT), 8);
  CHECK_EQUAL(m.type, 3);
  CHECK_EQUAL(msgrcv(id, &m, 16, -4, IPC_NOWAIT), 8);
  CHECK_EQUAL(m.type, 1);
  struct msqid_ds d;
  CHECK_EQUAL(msgctl(id, IPC_STAT, &d), 0);
  CHECK_EQUAL(d.msg_qnum, 1);
  CHECK_EQUAL(d.msg_lspid, getpid());
  CHECK_EQUAL(d.msg_lrpid, getpid());
  d.msg_qbytes = 16;
  CHECK_EQUAL(msgctl(id, IPC_SET, &d), 0);
  CHECK_EQUAL(send(id, 5, 8), 0);
  CHECK_EQUAL(send(id, 6, 8), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(msgrcv(id, &m, 16, 6, IPC_NOWAIT), -1);
  CHECK_EQUAL(errno, ENOMSG);
  CHECK_EQUAL(msgctl(id, IPC_RMID, NULL), 0);
  CHECK_EQUAL(send(id, 1, 1), -1);
  CHECK_EQUAL(errno, EINVAL);
  return succeed();
}
