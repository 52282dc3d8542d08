// SPDX-License-Identifier: Apache-2.0
// A message queue returns the highest priority first, and the oldest message of that priority.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>

#include "../small.h"

int main(void) {
  char name[80], b[16];
  unsigned priority = 0;
  struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = sizeof b}, now;
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  mq_unlink(name);
  const mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
  CHECK(q >= 0);
  CHECK_EQUAL(mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a), -1);
  CHECK_EQUAL(errno, EEXIST);
  CHECK_EQUAL(mq_send(q, "a", 1, 1), 0);
  CHECK_EQUAL(mq_send(q, "b", 1, 7), 0);
  CHECK_EQUAL(mq_send(q, "c", 1, 7), 0);
  CHECK_EQUAL(mq_getattr(q, &now), 0);
  CHECK_EQUAL(now.mq_curmsgs, 3);
  for (const char* wanted = "bca"; *wanted != 0; ++wanted) {
    CHECK_EQUAL(mq_receive(q, b, sizeof b, &priority), 1);
    CHECK_EQUAL(b[0], *wanted);
    CHECK_EQUAL(priority, *wanted == 'a' ? 1 : 7);
  }
  CHECK_EQUAL(mq_receive(q, b, 1, NULL), -1);
  CHECK_EQUAL(errno, EMSGSIZE);
  CHECK_EQUAL(mq_unlink(name), 0);
  CHECK_EQUAL(mq_close(q), 0);
  CHECK_EQUAL(mq_open(name, O_RDWR), -1);
  CHECK_EQUAL(errno, ENOENT);
  return succeed();
}
