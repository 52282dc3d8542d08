// SPDX-License-Identifier: Apache-2.0
// A handler ends poll and select with EINTR, whether it asked for a restart or not.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>

#include "../small.h"

static pthread_t waiter;
static void note(int signo) { (void)signo; }
static void* disturber(void* x) {
  sleep_ms(10);
  CHECK_EQUAL(pthread_kill(waiter, SIGUSR1), 0);
  return x;
}

int main(void) {
  waiter = pthread_self();
  const int flags[] = {0, SA_RESTART};
  for (int i = 0; i < 2; ++i) {
    handle(SIGUSR1, note, flags[i]);
    pthread_t t = start(disturber, NULL);
    CHECK_EQUAL(poll(NULL, 0, -1), -1);
    CHECK_EQUAL(errno, EINTR);
    join(t);
    t = start(disturber, NULL);
    CHECK_EQUAL(select(0, NULL, NULL, NULL, NULL), -1);
    CHECK_EQUAL(errno, EINTR);
    join(t);
  }
  return succeed();
}
