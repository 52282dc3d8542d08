// SPDX-License-Identifier: Apache-2.0
// More shared mappings than any program holds: at some number mmap returns ENOMEM, existing
// mappings stay valid, and unmapping some makes room.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../small.h"

enum { kMost = 6000, kPage = 4096 };
static char* pages[kMost];

int main(void) {
  int made = 0;
  for (; made < kMost; ++made) {
    char* page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
      CHECK_EQUAL(errno, ENOMEM);
      break;
    }
    page[0] = (char)made;
    pages[made] = page;
  }
  CHECK(made > 1024);
  for (int i = 0; i < made; ++i) {
    CHECK_EQUAL(pages[i][0], (char)i);
    CHECK_EQUAL(munmap(pages[i], kPage), 0);
  }
  CHECK(mmap(NULL, kPage, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  return succeed();
}
