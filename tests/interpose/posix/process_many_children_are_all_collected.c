// SPDX-License-Identifier: Apache-2.0
// Twenty children at once: each is collected once, with its own status.
#define _GNU_SOURCE
#include "../child.h"

static int child(int x) {
  if (x % 3 == 0) sleep_ms(x);
  return x;
}

int main(void) {
  enum { kCount = 20 };
  pid_t numbers[kCount];
  int seen[kCount] = {0}, status;
  for (int i = 0; i < kCount; ++i) numbers[i] = start_process(child, i);
  for (int i = 0; i < kCount; ++i) {
    const pid_t p = wait(&status);
    CHECK(p > 0 && WIFEXITED(status));
    const int which = WEXITSTATUS(status);
    CHECK_EQUAL(numbers[which], p);
    CHECK_EQUAL(seen[which]++, 0);
  }
  CHECK_EQUAL(wait(&status), -1);
  CHECK_EQUAL(errno, ECHILD);
  return succeed();
}
