// SPDX-License-Identifier: Apache-2.0
// says: limit: .*processes
// Children are made without waiting for them until the limit (EAGAIN); after waits for them, others
// can be made.
#include "../child.h"
#include "../limit.h"

#define MOST 300

static int end_with(int status) { return status; }

int main(void) {
  static pid_t children[MOST];
  int made = 0, refusals = 0;
  while (made < MOST && refusals < 20) {
    const pid_t child = fork();
    if (child == 0) _exit(3);
    if (child > 0) {
      children[made++] = child;
    } else {
      check_refusal(errno, EAGAIN, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(made > 50);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(WEXITSTATUS(status_of(children[i])), 3);
  for (int i = 0; i < 10; ++i) CHECK_EQUAL(WEXITSTATUS(status_of(start_process(end_with, i))), i);
  return succeed();
}
