// SPDX-License-Identifier: Apache-2.0
// says: limit: .*descriptors
// Descriptors are made until the limit. A pair is made completely or not at all: a refused pipe or
// socketpair uses none. Closing one makes room for another.
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "../limit.h"

#define MOST 17000

static int fds[MOST];

static void check_pairs(int expected) {
  for (int i = 0; i < 5; ++i) {
    int two[2];
    const int piped = pipe(two);
    CHECK_EQUAL(piped, expected);
    if (piped == 0) CHECK(close(two[0]) == 0 && close(two[1]) == 0);
    if (piped != 0) check_refusal(errno, EMFILE, ENFILE, 0);
    const int paired = socketpair(AF_UNIX, SOCK_STREAM, 0, two);
    CHECK_EQUAL(paired, expected);
    if (paired == 0) CHECK(close(two[0]) == 0 && close(two[1]) == 0);
    if (paired != 0) check_refusal(errno, EMFILE, ENFILE, 0);
  }
}

int main(void) {
  allow_descriptors(MOST + 2000);
  int made = 0;
  while (made < MOST && (fds[made] = eventfd(0, EFD_CLOEXEC)) >= 0) ++made;
  CHECK(made > 100);
  if (made < MOST) {
    check_refusal(errno, EMFILE, ENFILE, 0);
    CHECK_EQUAL(close(fds[--made]), 0);  // room for one, not for two
    check_pairs(-1);
    fds[made++] = eventfd(0, EFD_CLOEXEC);
    CHECK(fds[made - 1] >= 0);
    CHECK_EQUAL(eventfd(0, EFD_CLOEXEC), -1);
    CHECK_EQUAL(dup(fds[0]), -1);
    check_refusal(errno, EMFILE, 0);
  }
  for (int i = 0; i < 2; ++i) CHECK_EQUAL(close(fds[--made]), 0);
  check_pairs(0);
  return succeed();
}
