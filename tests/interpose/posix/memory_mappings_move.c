// SPDX-License-Identifier: Apache-2.0
// MAP_FIXED replaces, MAP_FIXED_NOREPLACE refuses, mremap grows, shrinks and moves with the
// contents; madvise makes private pages zeros again.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../small.h"

#define PAGE 4096

int main(void) {
  const int rw = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* const room = mmap(NULL, 16 * PAGE, PROT_NONE, flags, -1, 0);
  CHECK(room != MAP_FAILED);
  CHECK(mmap(room, 2 * PAGE, rw, flags | MAP_FIXED, -1, 0) == room);
  room[0] = 'a';
  room[PAGE] = 'b';
  CHECK(mmap(room, PAGE, rw, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
  CHECK_EQUAL(errno, EEXIST);
  CHECK(mmap(room + PAGE, PAGE, rw, flags | MAP_FIXED, -1, 0) == room + PAGE);
  CHECK_EQUAL(room[PAGE], 0);
  room[PAGE] = 'c';
  CHECK_EQUAL(munmap(room + 8 * PAGE, 8 * PAGE), 0);
  char* const to = room + 8 * PAGE;
  CHECK(mremap(room, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
  CHECK(to[0] == 'a' && to[PAGE] == 'c' && to[2 * PAGE] == 0);
  CHECK(mremap(to, 3 * PAGE, PAGE, 0) == to);
  CHECK(mremap(to, PAGE, 2 * PAGE, 0) == to);
  CHECK(to[0] == 'a' && to[PAGE] == 0);
  char* const moved = mremap(to, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved[0] == 'a');
  CHECK(mremap(moved + 1, PAGE, PAGE, 0) == MAP_FAILED && errno == EINVAL);
  CHECK_EQUAL(madvise(moved, PAGE, MADV_DONTNEED), 0);
  CHECK_EQUAL(moved[0], 0);
  CHECK(madvise(moved, PAGE, 12345) == -1 && errno == EINVAL);
  CHECK(madvise(moved + 1, PAGE, MADV_NORMAL) == -1 && errno == EINVAL);
  unsigned char here[2];
  CHECK_EQUAL(mincore(moved, 2 * PAGE, here), 0);
  CHECK_EQUAL(mprotect(moved, PAGE, PROT_READ), 0);
  CHECK(mprotect(moved + 1, PAGE, PROT_READ) == -1 && errno == EINVAL);
  CHECK(mremap(moved, 64 * PAGE, 0, 0) == MAP_FAILED && errno == EINVAL);
  CHECK_EQUAL(munmap(moved, 64 * PAGE), 0);
  return succeed();
}
