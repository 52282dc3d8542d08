// SPDX-License-Identifier: Apache-2.0
// native: no
// says: limit: .*clone
// clone() is refused however often a program calls it, and the log does not grow with it.
#include "../limit.h"

static int never(void* given) {
  (void)given;
  return 1;
}

int main(void) {
  static char stack[16384];
  for (int i = 0; i < 20000; ++i) {
    CHECK_EQUAL(clone(never, stack + sizeof stack, 0, NULL), -1);
    CHECK_EQUAL(errno, ENOSYS);
  }
  return succeed();
}
