// SPDX-License-Identifier: Apache-2.0
// native: no
// Code that runs before the constructors of all libraries (an allocator reads the clock there,
// others take random seeds) already sees virtual time and randomness: two runs print the same.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "check.h"

static struct timespec when;
static unsigned long seed;
static int locked = -1;
static char** environment;

static void early(int argc, char** argv, char** env) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  (void)argc;
  (void)argv;
  environment = env;
  locked = pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex);
  clock_gettime(CLOCK_REALTIME, &when);
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = 0;
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char**,
                                                                            char**) = early;

int main(void) {
  CHECK_EQUAL(locked, 0);
  CHECK(environment == environ && getenv("PATH") != NULL);
  printf("time %ld.%09ld seed %016lx\n", (long)when.tv_sec, when.tv_nsec, seed);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  CHECK(now.tv_sec - when.tv_sec <= 1);
  return succeed();
}
