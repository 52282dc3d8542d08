// SPDX-License-Identifier: Apache-2.0
// alarm returns the time that was left of the previous one, and 0 cancels.
#include "../small.h"

int main(void) {
  CHECK_EQUAL(alarm(100), 0);
  CHECK_EQUAL(alarm(50), 100);
  CHECK_EQUAL(alarm(0), 50);
  CHECK_EQUAL(alarm(0), 0);
  return succeed();
}
