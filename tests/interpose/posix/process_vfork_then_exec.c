// SPDX-License-Identifier: Apache-2.0
// vfork and exec: the child's program runs, and the parent gets its status.
#define _GNU_SOURCE
#include "../child.h"

int main(void) {
  for (int i = 0; i < 3; ++i) {
    char code[] = "exit 40";
    code[6] = (char)('0' + i);
    const pid_t p = vfork();
    CHECK(p >= 0);
    if (p == 0) {
      execl("/bin/sh", "sh", "-c", code, (char*)NULL);
      _exit(127);
    }
    CHECK_EQUAL(WEXITSTATUS(status_of(p)), 40 + i);
  }
  return succeed();
}
