// SPDX-License-Identifier: Apache-2.0
// poll with no descriptors, negative ones and closed ones; a timeout of 0 returns at once, one of
// -1 waits for a writer; bad arguments of select and ppoll.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>

#include "../small.h"

#define FAILS(call, error) CHECK((call) < 0 && errno == (error))

static int fds[2];
static void* write_it(void* unused) {
  (void)unused;
  sleep_ms(5);
  CHECK_EQUAL(write(fds[1], "x", 1), 1);
  return NULL;
}

int main(void) {
  CHECK_EQUAL(pipe(fds), 0);
  CHECK_EQUAL(poll(NULL, 0, 0), 0);
  const long long before = now_ns(CLOCK_MONOTONIC);
  CHECK_EQUAL(poll(NULL, 0, 10), 0);
  struct pollfd p[3] = {{-1, POLLIN, 77}, {-5, POLLIN, 77}, {fds[0], POLLIN, 77}};
  CHECK_EQUAL(poll(p, 2, 10), 0);
  CHECK(now_ns(CLOCK_MONOTONIC) - before >= 20 * MS);
  CHECK(p[0].revents == 0 && p[1].revents == 0);
  CHECK_EQUAL(poll(p, 3, 0), 0);
  const pthread_t t = start(write_it, NULL);
  CHECK_EQUAL(poll(p, 3, -1), 1);
  CHECK_EQUAL(p[2].revents, POLLIN);
  join(t);
  p[0] = (struct pollfd){999, POLLIN, 0};
  p[1] = p[2];
  CHECK_EQUAL(poll(p, 3, -1), 3);
  CHECK_EQUAL(p[0].revents, POLLNVAL);
  CHECK_EQUAL(p[1].revents, POLLIN);
  volatile nfds_t many = 1000000;
  FAILS(poll(p, many, 0), EINVAL);
  struct timespec bad = {0, 1000000000};
  FAILS(ppoll(p, 3, &bad, NULL), EINVAL);
  bad = (struct timespec){-1, 0};
  FAILS(ppoll(p, 3, &bad, NULL), EINVAL);
  struct timeval v = {-1, 0};
  FAILS(select(0, NULL, NULL, NULL, &v), EINVAL);
  FAILS(select(-1, NULL, NULL, NULL, NULL), EINVAL);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(50, &set);
  v.tv_sec = 0;
  FAILS(select(51, &set, NULL, NULL, &v), EBADF);
  return succeed();
}
