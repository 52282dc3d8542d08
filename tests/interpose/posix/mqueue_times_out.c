// SPDX-License-Identifier: Apache-2.0
// mq_timedreceive and mq_timedsend return ETIMEDOUT at their time; a handler ends them earlier.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

static void note(int signo) { (void)signo; }

int main(void) {
  char name[80], b[8];
  struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  mq_unlink(name);
  const mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  struct timespec t = in_ns(CLOCK_REALTIME, 20 * MS);
  CHECK_EQUAL(mq_timedreceive(q, b, sizeof b, NULL, &t), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK(now_ns(CLOCK_REALTIME) >= t.tv_sec * 1000000000LL + t.tv_nsec);
  CHECK_EQUAL(mq_timedsend(q, "x", 1, 0, &t), 0);
  CHECK_EQUAL(mq_timedsend(q, "y", 1, 0, &t), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  handle(SIGALRM, note, 0);
  ualarm(20000, 0);
  CHECK_EQUAL(mq_send(q, "y", 1, 0), -1);
  CHECK_EQUAL(errno, EINTR);
  CHECK_EQUAL(mq_close(q), 0);
  return succeed();
}
