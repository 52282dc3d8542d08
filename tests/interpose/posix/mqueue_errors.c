// SPDX-License-Identifier: Apache-2.0
// mq_*: invalid names, attributes, sizes and priorities, and descriptors of the wrong mode.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>

#include "../small.h"

static void not_opened(const char* name, int flags, const struct mq_attr* a, int error) {
  CHECK_EQUAL(mq_open(name, flags, 0600, a), -1);
  CHECK_EQUAL(errno, error);
}

int main(void) {
  char name[80], b[16], long_name[300] = "/";
  memset(long_name + 1, 'n', 270);
  struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 8}, none = {.mq_maxmsg = 0, .mq_msgsize = 8};
  snprintf(name, sizeof name, "/%s-%d", program_invocation_short_name, getpid());
  not_opened("noslash", O_RDONLY, NULL, EINVAL);
  not_opened("/", O_RDONLY, NULL, ENOENT);
  not_opened("/a/b", O_RDONLY, NULL, EACCES);
  not_opened(long_name, O_CREAT | O_RDWR, &a, ENAMETOOLONG);
  not_opened(name, O_RDWR, NULL, ENOENT);
  not_opened(name, O_CREAT | O_RDWR, &none, EINVAL);
  const mqd_t q = mq_open(name, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, 0600, &a);
  CHECK(q >= 0);
  not_opened(name, O_CREAT | O_EXCL | O_RDWR, &a, EEXIST);
  const mqd_t reader = mq_open(name, O_RDONLY | O_NONBLOCK), writer = mq_open(name, O_WRONLY);
  CHECK_EQUAL(mq_unlink(name), 0);
  CHECK_EQUAL(mq_unlink(name), -1);
  CHECK_EQUAL(errno, ENOENT);
  CHECK_EQUAL(mq_send(q, "123456789", 9, 0), -1);
  CHECK_EQUAL(errno, EMSGSIZE);
  CHECK_EQUAL(mq_send(q, "x", 1, sysconf(_SC_MQ_PRIO_MAX)), -1);
  CHECK_EQUAL(errno, EINVAL);
  CHECK_EQUAL(mq_send(reader, "x", 1, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(mq_receive(writer, b, sizeof b, NULL), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(mq_receive(q, b, sizeof b, NULL), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(mq_send(q, "", 0, 1), 0);
  CHECK_EQUAL(mq_send(q, "12345678", 8, 2), 0);
  CHECK_EQUAL(mq_send(q, "x", 1, 0), -1);
  CHECK_EQUAL(errno, EAGAIN);
  CHECK_EQUAL(mq_receive(q, b, 7, NULL), -1);
  CHECK_EQUAL(errno, EMSGSIZE);
  unsigned priority = 9;
  CHECK_EQUAL(mq_receive(q, b, 8, &priority), 8);
  CHECK_EQUAL(priority, 2);
  CHECK_EQUAL(mq_receive(q, b, 8, &priority), 0);
  CHECK_EQUAL(priority, 1);
  CHECK_EQUAL(mq_close(q), 0);
  CHECK_EQUAL(mq_close(q), -1);
  CHECK_EQUAL(errno, EBADF);
  CHECK_EQUAL(mq_send(1000, "x", 1, 0), -1);
  CHECK_EQUAL(errno, EBADF);
  return succeed();
}
