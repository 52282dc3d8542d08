// SPDX-License-Identifier: Apache-2.0
// Functions that are soft barrier points without a change to the program: one of the program,
// called directly; one of a linked library; one of a library that it loads, twice; in threads, and
// in processes, forked and executed. The order in which threads reach the function ('a') and begin
// it ('c') shows whether they wait for each other; arguments and results are unchanged (POINT-1).
//
// build: -rdynamic -l:crane_soft_barrier_library -Wl,-rpath,$ORIGIN
// solo: --barriers own_function:3:99999,linked_function:3:99999,plugin_function:7:99999,no_such:3:9
#define _GNU_SOURCE
#include "soft_barrier_points.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

enum { kThreads = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char order[64];
static size_t used;
static int notes_to = -1;  // in a child: the descriptor that they are written to

static void note(char c) {
  if (notes_to >= 0) {
    CHECK(write(notes_to, &c, 1) == 1);
    return;
  }
  pthread_mutex_lock(&mutex);
  order[used++] = c;
  pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) long own_function(long a, long b, long c, long d, long e, long f, long g,
                                            long h) {
  CHECK_EQUAL(errno, 77);
  note('c');
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

static void* call_own(void* unused) {
  (void)unused;
  note('a');
  errno = 77;
  CHECK_EQUAL(own_function(1, 2, 3, 4, 5, 6, 7, 8), 204);
  return NULL;
}

static void* call_linked(void* unused) {
  (void)unused;
  note('a');
  const struct Triple triple = {100, 200, 300};
  const double sum = linked_function(note, 1, 2, 3, 4, 5, 6, 7, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5,
                                     7.5, 8.5, 9.5, triple, 3, 1000, 2000, 3000);
  CHECK(sum == 28 + 50 + 600 + 6000);
  return NULL;
}

static void* call_plugin(void* function) {
  note('a');
  const Vector a = {1, 2, 3, 4}, b = {10, 20, 30, 40};
  const Vector sum = (*(PluginFunction**)function)(note, a, b, 100.25L);
  for (int i = 0; i < 4; ++i) CHECK_EQUAL(sum[i], 100 + 11 * (i + 1));
  return NULL;
}

static void together(const char* name, void* (*routine)(void*), void* argument) {
  pthread_t t[kThreads];
  memset(order, 0, sizeof order);
  used = 0;
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&t[i], NULL, routine, argument) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(t[i], NULL) == 0);
  printf("%s: %s\n", name, order);
}

static void load_and_call(const char* program) {
  char path[4096];
  const char* slash = strrchr(program, '/');
  CHECK(slash != NULL);
  snprintf(path, sizeof path, "%.*s/crane_soft_barrier_plugin", (int)(slash - program), program);
  for (int i = 0; i < 2; ++i) {
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin != NULL);
    void* function = dlsym(plugin, "plugin_function");
    CHECK(function != NULL);
    together(i == 0 ? "loaded" : "loaded again", call_plugin, &function);
    CHECK(dlclose(plugin) == 0);
  }
}

static void call_in_children(const char* program) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (int i = 0; i < kThreads; ++i) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) continue;
    notes_to = ends[1];
    if (i > 0) {
      char fd[16];
      snprintf(fd, sizeof fd, "%d", notes_to);
      execl(program, program, fd, (char*)NULL);
      _exit(1);
    }
    call_own(NULL);
    _exit(0);
  }
  close(ends[1]);
  memset(order, 0, sizeof order);
  ssize_t n;
  for (used = 0; (n = read(ends[0], order + used, sizeof order - 1 - used)) > 0;) used += (size_t)n;
  close(ends[0]);
  for (int i = 0; i < kThreads; ++i) {
    int status = -1;
    CHECK(wait(&status) > 0);
    CHECK_EQUAL(status, 0);
  }
  printf("processes: %s\n", order);
}

int main(int count, char** words) {
  if (count > 1) {
    notes_to = atoi(words[1]);
    call_own(NULL);
    return 0;
  }
  together("own", call_own, NULL);
  together("linked", call_linked, NULL);
  load_and_call(words[0]);
  call_in_children(words[0]);
  return succeed();
}
