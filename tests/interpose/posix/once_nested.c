// SPDX-License-Identifier: Apache-2.0
// A once routine calls another pthread_once.
#include "../small.h"

static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static int order;
static void make_inner(void) { order = order * 10 + 1; }
static void make_outer(void) {
  pthread_once(&inner, make_inner);
  order = order * 10 + 2;
}

int main(void) {
  pthread_once(&outer, make_outer);
  pthread_once(&inner, make_inner);
  pthread_once(&outer, make_outer);
  CHECK_EQUAL(order, 12);
  return succeed();
}
