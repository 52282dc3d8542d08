// SPDX-License-Identifier: Apache-2.0
// pthread_getattr_np returns a thread's stack size, its guard and whether it is detached; a stack
// supplied by the program has no guard and the given address.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../small.h"

static char* given;
#define BYTES (256 << 10)

static void* look(void* guard) {
  pthread_attr_t own;
  size_t size = 0, found = 1;
  void* stack = NULL;
  char here;
  CHECK_EQUAL(pthread_getattr_np(pthread_self(), &own), 0);
  CHECK_EQUAL(pthread_attr_getstack(&own, &stack, &size), 0);
  CHECK_EQUAL(pthread_attr_getguardsize(&own, &found), 0);
  CHECK(&here > (char*)stack && &here < (char*)stack + size);
  CHECK_EQUAL(found, *(size_t*)guard);
  if (*(size_t*)guard == 0 && given != NULL) {
    CHECK(stack == given);
    CHECK_EQUAL(size, BYTES);
  } else {
    CHECK(size >= BYTES - 65536 && size <= BYTES + 65536);
  }
  CHECK_EQUAL(pthread_attr_destroy(&own), 0);
  return NULL;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t t;
  size_t guards[] = {4096, 16384, 0};
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(pthread_attr_init(&attributes), 0);
    CHECK_EQUAL(pthread_attr_setstacksize(&attributes, BYTES), 0);
    CHECK_EQUAL(pthread_attr_setguardsize(&attributes, guards[i]), 0);
    CHECK_EQUAL(pthread_create(&t, &attributes, look, &guards[i]), 0);
    join(t);
  }
  given = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(given != MAP_FAILED);
  CHECK_EQUAL(pthread_attr_init(&attributes), 0);
  CHECK_EQUAL(pthread_attr_setstack(&attributes, given, BYTES), 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_EQUAL(pthread_create(&t, &attributes, look, &guards[2]), 0);
    join(t);
  }
  CHECK_EQUAL(munmap(given, BYTES), 0);
  return succeed();
}
