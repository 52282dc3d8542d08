// SPDX-License-Identifier: Apache-2.0
// mq_receive waits for a message and mq_send for room; a nonblocking queue returns EAGAIN.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../child.h"

static mqd_t q;
static int receiver(int count) {
  char b[8];
  for (int i = 0; i < count; ++i) {
    CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
    CHECK_EQUAL(b[0], 'a' + i);
    if (i == 1) sleep_ms(10);
  }
  return 0;
}

int main(void) {
  char name[80];
  struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 8}, flags = {.mq_flags = O_NONBLOCK};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  mq_unlink(name);
  q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  const pid_t p = start_process(receiver, 10);
  for (int i = 0; i < 10; ++i) {
    const char c = (char)('a' + i);
    CHECK_EQUAL(mq_send(q, &c, 1, 0), 0);
  }
  CHECK_EQUAL(status_of(p), 0);
  CHECK_EQUAL(mq_setattr(q, &flags, NULL), 0);
  char b[8];
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(mq_close(q), 0);
  return succeed();
}
