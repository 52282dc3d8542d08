// SPDX-License-Identifier: Apache-2.0
// An alarm survives exec, and its default action ends the new image.
// exit: 142
#include "../small.h"

int main(int argc, char** argv) {
  if (argc > 1) {
    for (;;) pause();
  }
  ualarm(20000, 0);
  execl("/proc/self/exe", argv[0], "x", (char*)NULL);
  return 1;
}
