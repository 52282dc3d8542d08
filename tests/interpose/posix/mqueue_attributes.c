// SPDX-License-Identifier: Apache-2.0
// mq_getattr and mq_setattr: the requested sizes, the number of messages, and the only flag that
// can be changed, for this open alone.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

int main(void) {
  char name[80], b[16];
  struct mq_attr a = {.mq_maxmsg = 3, .mq_msgsize = 16}, got, old;
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  const mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a), other = mq_open(name, O_RDWR);
  CHECK(q >= 0 && other >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  CHECK_EQUAL(mq_send(q, "x", 1, 0), 0);
  CHECK_EQUAL(mq_send(other, "y", 1, 0), 0);
  CHECK_EQUAL(mq_getattr(q, &got), 0);
  CHECK_EQUAL(got.mq_flags, 0);
  CHECK_EQUAL(got.mq_maxmsg, 3);
  CHECK_EQUAL(got.mq_msgsize, 16);
  CHECK_EQUAL(got.mq_curmsgs, 2);
  a = (struct mq_attr){.mq_flags = O_NONBLOCK, .mq_maxmsg = 77, .mq_msgsize = 99};
  CHECK_EQUAL(mq_setattr(q, &a, &old), 0);
  CHECK_EQUAL(old.mq_flags, 0);
  CHECK_EQUAL(old.mq_curmsgs, 2);
  CHECK_EQUAL(mq_getattr(q, &got), 0);
  CHECK_EQUAL(got.mq_flags, O_NONBLOCK);
  CHECK_EQUAL(got.mq_maxmsg, 3);
  CHECK_EQUAL(mq_getattr(other, &got), 0);
  CHECK_EQUAL(got.mq_flags, 0);
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  a.mq_flags = 0x10;
  CHECK_EQUAL(mq_setattr(q, &a, NULL), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(mq_getattr(1000, &got), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
