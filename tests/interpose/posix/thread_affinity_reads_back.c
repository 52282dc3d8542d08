// SPDX-License-Identifier: Apache-2.0
// An affinity reads back, threads and children inherit it, and the thread runs on one of its
// processors.
#define _GNU_SOURCE
#include "../child.h"

static cpu_set_t one;

static void* look(void* unused) {
  cpu_set_t got;
  CHECK_EQUAL(pthread_getaffinity_np(pthread_self(), sizeof got, &got), 0);
  CHECK(CPU_EQUAL(&got, &one));
  CHECK(CPU_ISSET(sched_getcpu(), &one));
  return unused;
}

static int look_as_child(int unused) {
  look(NULL);
  return unused;
}

int main(void) {
  cpu_set_t all;
  CHECK_EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
  int last = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) last = i;
  }
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
  look(NULL);
  elsewhere(look, NULL);
  CHECK_EQUAL(status_of(start_process(look_as_child, 0)), 0);
  CHECK_EQUAL(sched_setaffinity(0, sizeof all, &all), 0);
  cpu_set_t got;
  CHECK_EQUAL(pthread_getaffinity_np(pthread_self(), sizeof got, &got), 0);
  CHECK(CPU_EQUAL(&got, &all));
  return succeed();
}
