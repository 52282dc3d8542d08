// SPDX-License-Identifier: Apache-2.0
// abort ends the process with SIGABRT even if it is blocked and ignored.
// exit: 134
#include "../small.h"

int main(void) {
  handle(SIGABRT, SIG_IGN, 0);
  block_signal(SIGABRT);
  abort();
}
