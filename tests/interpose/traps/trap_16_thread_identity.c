// SPDX-License-Identifier: Apache-2.0
// pthread_create stores the new thread's id before the creator continues, and pthread_self returns
// the same id in the thread; kernel ids differ from thread to thread.
#include "../small.h"

static pthread_t of_child[8];
static pid_t ids[8];

static void* print_thread_id(void* x) {
  of_child[(long)x] = pthread_self();
  ids[(long)x] = gettid();
  return x;
}

int main(void) {
  pthread_t t[8];
  for (long i = 0; i < 8; ++i) t[i] = start(print_thread_id, (void*)i);
  for (int i = 0; i < 8; ++i) join(t[i]);
  for (int i = 0; i < 8; ++i) {
    CHECK(pthread_equal(t[i], of_child[i]));
    CHECK(ids[i] != getpid());
    for (int j = 0; j < i; ++j) CHECK(ids[i] != ids[j]);
  }
  return succeed();
}
