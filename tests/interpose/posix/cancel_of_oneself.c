// SPDX-License-Identifier: Apache-2.0
// A thread that cancels itself ends at once if its type is asynchronous, otherwise at its next
// cancellation point; with cancellation disabled at neither.
#include "../small.h"

static int reached;

static void* at_once(void* unused) {
  CHECK_EQUAL(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
  CHECK_EQUAL(pthread_cancel(pthread_self()), 0);
  reached = 1;
  return unused;
}

static void* at_a_point(void* unused) {
  CHECK_EQUAL(pthread_cancel(pthread_self()), 0);
  reached = 2;
  pthread_testcancel();
  reached = 3;
  return unused;
}

static void* when_enabled(void* unused) {
  int old = -1;
  CHECK_EQUAL(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
  CHECK_EQUAL(old, PTHREAD_CANCEL_ENABLE);
  CHECK_EQUAL(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
  CHECK_EQUAL(old, PTHREAD_CANCEL_DEFERRED);
  CHECK_EQUAL(pthread_cancel(pthread_self()), 0);
  pthread_testcancel();
  reached = 4;
  CHECK_EQUAL(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
  reached = 5;
  return unused;
}

static void* bad_values(void* unused) {
  CHECK_EQUAL(pthread_setcancelstate(77, NULL), EINVAL);
  CHECK_EQUAL(pthread_setcanceltype(77, NULL), EINVAL);
  return unused;
}

int main(void) {
  CHECK(join(start(at_a_point, NULL)) == PTHREAD_CANCELED);
  CHECK_EQUAL(reached, 2);
  CHECK(join(start(when_enabled, NULL)) == PTHREAD_CANCELED);
  CHECK_EQUAL(reached, 4);
  CHECK(join(start(bad_values, NULL)) == NULL);
  reached = 0;
  CHECK(join(start(at_once, NULL)) == PTHREAD_CANCELED);
  CHECK_EQUAL(reached, 0);
  return succeed();
}
