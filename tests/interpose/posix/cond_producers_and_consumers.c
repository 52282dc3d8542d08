// SPDX-License-Identifier: Apache-2.0
// A bounded buffer with two conditions: everything that goes in comes out, once.
#include "../small.h"

enum { kRoom = 4, kEach = 50 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int buffer[kRoom], in, out, count, seen[3 * kEach];
static void* produce(void* x) {
  for (int i = 0; i < kEach; ++i) {
    pthread_mutex_lock(&mutex);
    while (count == kRoom) pthread_cond_wait(&not_full, &mutex);
    buffer[in++ % kRoom] = (int)(long)x * kEach + i;
    ++count;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
  }
  return x;
}
static void* consume(void* x) {
  for (int i = 0; i < kEach; ++i) {
    pthread_mutex_lock(&mutex);
    while (count == 0) pthread_cond_wait(&not_empty, &mutex);
    ++seen[buffer[out++ % kRoom]];
    --count;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&mutex);
  }
  return x;
}

int main(void) {
  pthread_t t[6];
  for (long i = 0; i < 3; ++i) {
    t[i] = start(produce, (void*)i);
    t[3 + i] = start(consume, NULL);
  }
  for (int i = 0; i < 6; ++i) join(t[i]);
  for (int i = 0; i < 3 * kEach; ++i) CHECK_EQUAL(seen[i], 1);
  return succeed();
}
