// SPDX-License-Identifier: Apache-2.0
// Two threads each wait for a child, and each gets its own.
#define _GNU_SOURCE
#include "../child.h"

static int child(int x) {
  sleep_ms(x == 11 ? 30 : 10);
  return x;
}
static void* waiter(void* x) {
  const long code = (long)x;
  CHECK_EQUAL(WEXITSTATUS(status_of(start_process(child, (int)code))), code);
  return x;
}

int main(void) {
  const pthread_t a = start(waiter, (void*)11), b = start(waiter, (void*)12);
  CHECK_EQUAL((long)join(a), 11);
  CHECK_EQUAL((long)join(b), 12);
  CHECK_EQUAL(wait(NULL), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
