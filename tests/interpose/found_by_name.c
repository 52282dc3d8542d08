// SPDX-License-Identifier: Apache-2.0
// A function looked up by name is the same as the one that a call finds: libc's by RTLD_NEXT, by
// libc's handle and by RTLD_DEFAULT. A thread started through it is an ordinary thread. A library's
// own definitions stay in effect, and the functions that they wrap are reached.
//
// build: -l:crane_found_by_name_library -Wl,-rpath,$ORIGIN
// solo: --unhooked
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "check.h"

extern int wrapped, wrapped_by_handle;
void* next_of(const char* name);

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
typedef int (*ClockGettime)(clockid_t, struct timespec*);

struct Known {
  const char* name;
  void* function;
};

enum { kThreads = 3, kRounds = 20 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int turn = 0;

// Round robin: each thread must see the others' locks and signals.
static void* take_part(void* x) {
  const int me = (int)(long)x;
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn % kThreads != me) pthread_cond_wait(&condition, &mutex);
    ++turn;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  }
  return x;
}

static long long ns_of(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

int main(void) {
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  CHECK(libc != NULL);
  const struct Known all[] = {
      {"pthread_create", (void*)pthread_create},
      {"pthread_mutex_trylock", (void*)pthread_mutex_trylock},
      {"pthread_cond_timedwait", (void*)pthread_cond_timedwait},
      {"sem_post", (void*)sem_post},
      {"clock_gettime", (void*)clock_gettime},
      {"nanosleep", (void*)nanosleep},
      {"epoll_wait", (void*)epoll_wait},
      {"accept4", (void*)accept4},
      {"open", (void*)open},
      {"read", (void*)read},
      {"fork", (void*)fork},
      {"execl", (void*)execl},
      {"dlsym", (void*)dlsym},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    CHECK(next_of(all[i].name) == all[i].function);
    CHECK(dlsym(libc, all[i].name) == all[i].function);
    CHECK(dlsym(RTLD_DEFAULT, all[i].name) == all[i].function);
  }
  printf("the same functions\n");

  // A function that neither Crane nor the library defines.
  CHECK(next_of("strlen") == dlsym(libc, "strlen"));
  CHECK(dlsym(libc, "no_such_function") == NULL);
  CHECK(dlerror() != NULL);
  CHECK(next_of("no_such_function") == NULL);
  CHECK(next_of("next_of") == NULL);
  printf("others as ever\n");

  void* library = dlopen("crane_found_by_name_library", RTLD_NOW | RTLD_NOLOAD);
  CHECK(library != NULL);
  void* its_own = dlsym(library, "pthread_mutex_consistent");
  CHECK(its_own != NULL && its_own != dlsym(libc, "pthread_mutex_consistent"));
  CHECK_EQUAL(pthread_mutex_consistent(&mutex), EINVAL);  // the mutex is not robust
  CHECK_EQUAL(wrapped, 1);
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(here >= 0);
  CHECK_EQUAL(fchdir(here), 0);
  CHECK_EQUAL(wrapped_by_handle, 1);
  close(here);
  printf("two that wrap\n");

  const Create create = (Create)next_of("pthread_create");
  const ClockGettime now = (ClockGettime)dlsym(libc, "clock_gettime");
  struct timespec before, between, after;
  CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC, &before), 0);
  CHECK_EQUAL(now(CLOCK_MONOTONIC, &between), 0);
  pthread_t t[kThreads];
  for (long i = 0; i < kThreads; ++i) CHECK_EQUAL(create(&t[i], NULL, take_part, (void*)i), 0);
  for (long i = 0; i < kThreads; ++i) {
    void* result = NULL;
    CHECK_EQUAL(pthread_join(t[i], &result), 0);
    CHECK_EQUAL((long)result, i);
  }
  CHECK_EQUAL(turn, kThreads * kRounds);
  CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC, &after), 0);
  CHECK(ns_of(before) <= ns_of(between) && ns_of(between) <= ns_of(after));
  printf("threads\n");
  return succeed();
}
