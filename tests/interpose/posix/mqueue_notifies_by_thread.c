// SPDX-License-Identifier: Apache-2.0
// mq_notify by thread: the function runs in a new thread, which may register again.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

static mqd_t q;
static sem_t came;

static void on_notice(union sigval v) {
  char b[8];
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD;
  e.sigev_notify_function = on_notice;
  e.sigev_value.sival_int = v.sival_int + 1;
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), 1);
  CHECK_EQUAL(b[0], 'a' + v.sival_int);
  CHECK_EQUAL(mq_notify(q, &e), 0);
  CHECK_EQUAL(sem_post(&came), 0);
}

int main(void) {
  char name[80];
  struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 8};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  CHECK_EQUAL(sem_init(&came, 0, 0), 0);
  struct sigevent e;
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD;
  e.sigev_notify_function = on_notice;
  CHECK_EQUAL(mq_notify(q, &e), 0);
  for (int i = 0; i < 3; ++i) {
    const char c = (char)('a' + i);
    CHECK_EQUAL(mq_send(q, &c, 1, 0), 0);
    CHECK_EQUAL(sem_wait(&came), 0);
  }
  return succeed();
}
