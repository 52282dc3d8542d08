// SPDX-License-Identifier: Apache-2.0
// native: no
// Under Crane random numbers, clocks and the winner of a race are the same in every run. This
// program prints them, and two runs must print the same.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static void show(const char* who) {
  uint64_t words[2];
  CHECK_EQUAL(getrandom(words, sizeof words, 0), sizeof words);
  CHECK(words[0] != words[1]);
  uint32_t word;
  CHECK_EQUAL(getentropy(&word, sizeof word), 0);
  struct timeval t;
  gettimeofday(&t, NULL);
  printf("%s %016llx %016llx %08x %ld.%06ld pid %d processors %ld\n", who,
         (unsigned long long)words[0], (unsigned long long)words[1], word, (long)t.tv_sec,
         (long)t.tv_usec, (int)getpid(), sysconf(_SC_NPROCESSORS_ONLN));
  fflush(stdout);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* race(void* x) {
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&mutex);
    putchar('a' + (int)(long)x);
    pthread_mutex_unlock(&mutex);
    unsigned char n;
    CHECK_EQUAL(getrandom(&n, 1, 0), 1);
    for (int j = 0; j < n % 8; ++j) sched_yield();
    if (n % 16 == 0) usleep(n);
  }
  pthread_mutex_lock(&mutex);
  show("thread");
  pthread_mutex_unlock(&mutex);
  return x;
}

int main(void) {
  show("main");
  const pid_t pid = fork();
  if (pid == 0) {
    show("child");
    _exit(0);
  }
  CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
  pthread_t t[4];
  for (long i = 0; i < 4; ++i) pthread_create(&t[i], NULL, race, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(t[i], NULL);
  putchar('\n');
  show("main");
  return succeed();
}
