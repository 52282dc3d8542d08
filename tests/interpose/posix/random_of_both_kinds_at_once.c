// SPDX-License-Identifier: Apache-2.0
// getrandom refuses GRND_RANDOM and GRND_INSECURE at once.
#define _GNU_SOURCE
#include <sys/random.h>

#include "../small.h"

int main(void) {
  char b[16];
  CHECK(getrandom(b, sizeof b, GRND_INSECURE) == 16);
  CHECK(getrandom(b, sizeof b, GRND_RANDOM | GRND_INSECURE) == -1 && errno == EINVAL);
  return succeed();
}
