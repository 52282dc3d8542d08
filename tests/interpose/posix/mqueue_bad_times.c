// SPDX-License-Identifier: Apache-2.0
// mq_timedsend and mq_timedreceive refuse an invalid time, also if they would not wait.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

int main(void) {
  char name[80], b[8];
  struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
  const struct timespec bad = {0, 1000000000}, negative = {-1, 0}, past = {1, 0};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  const mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_unlink(name), 0);
  CHECK_EQUAL(mq_timedreceive(q, b, sizeof b, NULL, &past), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK_EQUAL(mq_timedsend(q, "x", 1, 0, &past), 0);
  CHECK_EQUAL(mq_timedsend(q, "x", 1, 0, &past), -1);
  CHECK_EQUAL(errno, ETIMEDOUT);
  CHECK_EQUAL(mq_timedsend(q, "x", 1, 0, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(mq_timedreceive(q, b, sizeof b, NULL, &bad), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(mq_timedreceive(q, b, sizeof b, NULL, &negative), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(mq_timedreceive(q, b, sizeof b, NULL, &past), 1);
  return succeed();
}
