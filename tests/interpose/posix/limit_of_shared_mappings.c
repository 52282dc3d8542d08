// SPDX-License-Identifier: Apache-2.0
// says: limit: .*shared mappings
// Shared memory is mapped until the limit (ENOMEM). Then no call splits a mapping either, and no
// part of it is lost; unmapping makes room.
#include <sys/mman.h>

#include "../limit.h"

#define MOST 4200
#define PAGE 4096

static char* mappings[MOST];

int main(void) {
  int made = 0, refusals = 0;
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  while (made < MOST && refusals < 20) {
    char* at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at != MAP_FAILED) {
      mappings[made++] = at;
    } else {
      check_refusal(errno, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(made > 500);
  int cut = 0;
  for (int i = 0; i < 200; ++i) {
    mappings[i][PAGE] = 'x';
    // Private pages in the middle: natively there is room for them.
    void* at = mappings[i] + PAGE;
    const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    void* got = mmap(at, PAGE, PROT_READ | PROT_WRITE, fixed, -1, 0);
    if (got == MAP_FAILED) {
      check_refusal(errno, ENOMEM, 0);
      CHECK_EQUAL(mappings[i][PAGE], 'x');
    } else {
      CHECK(got == at);
      ++cut;
    }
    if (munmap(at, PAGE) != 0) check_refusal(errno, ENOMEM, 0);
  }
  CHECK(made == MOST || cut < 200);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(munmap(mappings[i], 3 * PAGE), 0);
  char* again = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
  CHECK(again != MAP_FAILED);
  again[PAGE] = 'y';
  CHECK_EQUAL(munmap(again + PAGE, PAGE), 0);
  return succeed();
}
