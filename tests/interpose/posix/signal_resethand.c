// SPDX-License-Identifier: Apache-2.0
// SA_RESETHAND: the handler runs once, then the default action applies.
// exit: 138
#include "../small.h"

static void once(int signo) {
  (void)signo;
  printf("handler\n");
  fflush(stdout);
}

int main(void) {
  handle(SIGUSR1, once, SA_RESETHAND);
  raise(SIGUSR1);
  raise(SIGUSR1);
  return 1;
}
