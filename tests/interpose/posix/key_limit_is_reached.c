// SPDX-License-Identifier: Apache-2.0
// PTHREAD_KEYS_MAX keys can be made, no more; deleted keys can be reused and begin with NULL; a
// deleted or unknown key fails with EINVAL.
#include <limits.h>

#include "../small.h"

static pthread_key_t keys[PTHREAD_KEYS_MAX + 1];

static void* look(void* key) {
  CHECK(pthread_getspecific(*(pthread_key_t*)key) == NULL);
  return NULL;
}

int main(void) {
  int made = 0, error;
  while ((error = pthread_key_create(&keys[made], NULL)) == 0) {
    ++made;
    CHECK(made <= PTHREAD_KEYS_MAX);
  }
  CHECK_EQUAL(error, EAGAIN);
  CHECK(made >= PTHREAD_KEYS_MAX - 8);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(pthread_setspecific(keys[i], &keys[i]), 0);
  for (int i = 0; i < made; ++i) CHECK(pthread_getspecific(keys[i]) == &keys[i]);
  elsewhere(look, &keys[made - 1]);
  CHECK_EQUAL(pthread_key_delete(keys[7]), 0);
  CHECK_EQUAL(pthread_key_delete(keys[7]), EINVAL);
  CHECK_EQUAL(pthread_setspecific(keys[7], &made), EINVAL);
  CHECK_EQUAL(pthread_key_delete(PTHREAD_KEYS_MAX), EINVAL);
  pthread_key_t again;
  CHECK_EQUAL(pthread_key_create(&again, NULL), 0);
  CHECK(pthread_getspecific(again) == NULL);
  for (int i = 0; i < made; ++i) {
    if (i != 7) CHECK_EQUAL(pthread_key_delete(keys[i]), 0);
  }
  return succeed();
}
