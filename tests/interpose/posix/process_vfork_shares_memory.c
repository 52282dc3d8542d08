// SPDX-License-Identifier: Apache-2.0
// A child of vfork writes its parent's memory until it ends: variables of every kind, the heap,
// errno. Other memory is unchanged.
#define _GNU_SOURCE
#include <errno.h>

#include "../child.h"

static volatile int global = 1;
static volatile int zeroed;
static _Thread_local volatile int own = 3;

static void look(volatile int* heap, volatile char* large) {
  volatile int local = 2;
  errno = ENOTTY;
  const pid_t p = vfork();
  CHECK(p >= 0);
  if (p == 0) {
    CHECK_EQUAL(errno, ENOTTY);
    global += 10;
    zeroed += 10;
    local += 10;
    own += 10;
    *heap += 10;
    large[3 << 20] = 'x';
    errno = EXDEV;
    _exit(5);
  }
  CHECK_EQUAL(errno, EXDEV);
  CHECK_EQUAL(local, 12);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 5);
}

int main(void) {
  volatile int* heap = malloc(sizeof *heap);
  volatile char* large = malloc(8 << 20);
  *heap = 4;
  large[5 << 20] = 'y';
  for (int i = 1; i <= 3; ++i) {
    look(heap, large);
    CHECK_EQUAL(global, 1 + 10 * i);
    CHECK_EQUAL(zeroed, 10 * i);
    CHECK_EQUAL(own, 3 + 10 * i);
    CHECK_EQUAL(*heap, 4 + 10 * i);
    CHECK_EQUAL(large[3 << 20], 'x');
    CHECK_EQUAL(large[5 << 20], 'y');
    large[3 << 20] = 0;
  }
  errno = ENOTTY;
  const pid_t p = vfork();
  if (p == 0) _exit(0);
  CHECK_EQUAL(errno, ENOTTY);
  CHECK_EQUAL(WEXITSTATUS(status_of(p)), 0);
  // The parent can free the child's allocations.
  char* volatile text = NULL;
  const pid_t second = vfork();
  if (second == 0) {
    text = strdup("allocated by the child");
    _exit(0);
  }
  CHECK(strcmp(text, "allocated by the child") == 0);
  free(text);
  CHECK_EQUAL(WEXITSTATUS(status_of(second)), 0);
  for (int i = 0; i < 100; ++i) free(malloc((size_t)i * 1000));
  return succeed();
}
