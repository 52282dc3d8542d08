// SPDX-License-Identifier: Apache-2.0
// One thread opens and closes libraries while others lock, sleep and look up symbols.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "../small.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

static void* load(void* x) {
  for (int i = 0; i < 10; ++i) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(library != NULL);
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    CHECK(cosine != NULL && cosine(0) == 1);
    pthread_mutex_lock(&mutex);
    ++rounds;
    pthread_mutex_unlock(&mutex);
    CHECK_EQUAL(dlclose(library), 0);
  }
  return x;
}
static void* lock_and_look(void* x) {
  for (int i = 0; i < 100; ++i) {
    pthread_mutex_lock(&mutex);
    ++rounds;
    CHECK(dlsym(RTLD_DEFAULT, "strlen") != NULL);
    pthread_mutex_unlock(&mutex);
  }
  return x;
}

int main(void) {
  const pthread_t a = start(load, NULL), b = start(lock_and_look, NULL), c = start(load, NULL);
  join(a);
  join(b);
  join(c);
  CHECK_EQUAL(rounds, 120);
  return succeed();
}
