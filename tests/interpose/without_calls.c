// SPDX-License-Identifier: Apache-2.0
// Clocks that need no call of libc: the vDSO's functions by getauxval, RDTSC and RDTSCP; in
// threads, in a child, and in an executed program. They agree with libc's clock.
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <x86intrin.h>

#include "check.h"

static void* vdso_function(const char* name) {
  const char* at = (const char*)getauxval(AT_SYSINFO_EHDR);
  CHECK(at != NULL);
  const Elf64_Ehdr* elf = (const Elf64_Ehdr*)at;
  const Elf64_Phdr* part = (const Elf64_Phdr*)(at + elf->e_phoff);
  const Elf64_Dyn* dynamic = NULL;
  const char* base = at;
  for (int i = 0; i < elf->e_phnum; ++i) {
    if (part[i].p_type == PT_LOAD) base = at + part[i].p_offset - part[i].p_vaddr;
    if (part[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn*)(at + part[i].p_offset);
  }
  const Elf64_Sym* symbols = NULL;
  const char* names = NULL;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym*)(base + dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) names = base + dynamic->d_un.d_ptr;
  }
  for (const Elf64_Sym* s = symbols; (const char*)(s + 1) <= names; ++s) {
    if (strcmp(names + s->st_name, name) == 0) return (void*)(base + s->st_value);
  }
  return NULL;
}

static long long ns_of(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

typedef int (*ClockGettime)(clockid_t, struct timespec*);
typedef time_t (*Time)(time_t*);

static void look(void) {
  const ClockGettime by_vdso = (ClockGettime)vdso_function("__vdso_clock_gettime");
  const Time time_by_vdso = (Time)vdso_function("__vdso_time");
  CHECK(by_vdso != NULL && time_by_vdso != NULL);
  for (int wall = 0; wall < 2; ++wall) {
    const clockid_t clock = wall ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    struct timespec before, between, after;
    CHECK_EQUAL(clock_gettime(clock, &before), 0);
    CHECK_EQUAL(by_vdso(clock, &between), 0);
    CHECK_EQUAL(clock_gettime(clock, &after), 0);
    CHECK(ns_of(before) <= ns_of(between) && ns_of(between) <= ns_of(after));
  }
  const time_t before = time(NULL), between = time_by_vdso(NULL), after = time(NULL);
  CHECK(before <= between && between <= after);
  struct timespec t;
  CHECK_EQUAL(by_vdso(12345, &t), -EINVAL);

  unsigned processor = 99;
  uint64_t last = __rdtsc();
  for (int i = 0; i < 200; ++i) {
    const uint64_t now = i % 2 == 0 ? __rdtsc() : __rdtscp(&processor);
    CHECK(now > last);
    last = now;
  }
  CHECK(processor != 99);
  const struct timespec nap = {0, 10000000};
  CHECK_EQUAL(nanosleep(&nap, NULL), 0);
  CHECK(__rdtsc() - last >= 5000000);
}

static void* in_thread(void* x) {
  look();
  return x;
}

int main(int argc, char** argv) {
  look();
  if (argc > 1) {
    printf("executed\n");
    fflush(stdout);
    return 7;
  }
  printf("main\n");
  pthread_t t;
  CHECK_EQUAL(pthread_create(&t, NULL, in_thread, NULL), 0);
  CHECK_EQUAL(pthread_join(t, NULL), 0);
  printf("thread\n");
  fflush(stdout);
  for (int executes = 0; executes < 2; ++executes) {
    const pid_t child = fork();
    if (child == 0) {
      look();
      if (executes) execl(argv[0], argv[0], "again", (char*)NULL);
      _exit(7);
    }
    int status = -1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(WEXITSTATUS(status), 7);
    printf("child\n");
    fflush(stdout);
  }
  return succeed();
}
