// SPDX-License-Identifier: Apache-2.0
// mq_receive and mq_send continue to wait after a handler that restarts calls.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

static mqd_t q;

static void* send_later(void* unused) {
  sleep_ms(50);
  CHECK_EQUAL(mq_send(q, "x", 1, 0), 0);
  return unused;
}

static void* receive_later(void* unused) {
  char b[8];
  sleep_ms(50);
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
  return unused;
}

int main(void) {
  char name[80], b[8];
  struct Interruptions rings;
  struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  begin_interruptions(&rings, SA_RESTART);
  pthread_t t = start(send_later, NULL);
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
  join(t);
  CHECK_EQUAL(mq_send(q, "y", 1, 0), 0);
  t = start(receive_later, NULL);
  CHECK_EQUAL(mq_send(q, "z", 1, 0), 0);
  join(t);
  end_interruptions(&rings);
  return succeed();
}
