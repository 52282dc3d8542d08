// SPDX-License-Identifier: Apache-2.0
// A handler ends poll and select with EINTR, with and without SA_RESTART.
#define _GNU_SOURCE
#include <poll.h>
#include <sys/select.h>

#include "../small.h"

int main(void) {
  struct Interruptions bell;
  const int flags[] = {0, SA_RESTART};
  for (int i = 0; i < 2; ++i) {
    begin_interruptions(&bell, flags[i]);
    CHECK_EQUAL(poll(NULL, 0, -1), -1);
    CHECK_EQUAL(errno, EINTR);
    end_interruptions(&bell);
    begin_interruptions(&bell, flags[i]);
    CHECK_EQUAL(select(0, NULL, NULL, NULL, NULL), -1);
    CHECK_EQUAL(errno, EINTR);
    end_interruptions(&bell);
  }
  return succeed();
}
