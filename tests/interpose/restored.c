// SPDX-License-Identifier: Apache-2.0
// solo: --restores
// native: no
// A thread removes from itself the state that the kernel loses when a server is restored from a
// checkpoint: the trap of its system calls, the fault at RDTSC, Crane's vDSO. After the next sleep
// all of it is back, in every thread and process, and in new threads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <x86intrin.h>

#include "check.h"

enum { kThreads = 3, kRounds = 4, kSetDispatch = 59 };

static long call(long n, long a, long b) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b) : "rcx", "r11", "memory");
  return result;
}

typedef int (*ClockGettime)(clockid_t, struct timespec*);
static ClockGettime by_vdso;
static char* vdso;
static size_t vdso_size;

static void find_vdso(void) {
  vdso = (char*)getauxval(AT_SYSINFO_EHDR);
  const Elf64_Ehdr* elf = (const Elf64_Ehdr*)vdso;
  const Elf64_Phdr* part = (const Elf64_Phdr*)(vdso + elf->e_phoff);
  const Elf64_Dyn* dynamic = NULL;
  const Elf64_Sym* symbols = NULL;
  const char* names = NULL;
  for (int i = 0; i < elf->e_phnum; ++i) {
    if (part[i].p_type == PT_LOAD) vdso_size = (part[i].p_memsz + 4095) & ~4095ul;
    if (part[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn*)(vdso + part[i].p_offset);
  }
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym*)(vdso + dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) names = vdso + dynamic->d_un.d_ptr;
  }
  for (const Elf64_Sym* s = symbols; (const char*)(s + 1) <= names; ++s) {
    if (strcmp(names + s->st_name, "__vdso_clock_gettime") == 0) {
      by_vdso = (ClockGettime)(vdso + s->st_value);
    }
  }
  CHECK(by_vdso != NULL);
}

static int64_t ns_of(struct timespec t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }

// Virtual time is libc's clock, read through the library; it is stalled between operations.
static int64_t now(void) {
  struct timespec t;
  CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC, &t), 0);
  return ns_of(t);
}

static int is_watched(void) {
  struct timespec t;
  CHECK_EQUAL(call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t), 0);
  const int64_t virtual = now();
  return ns_of(t) <= virtual && virtual - ns_of(t) < 1000000;
}

// By RDTSCP, which always faults (tsc_site.h).
static int has_virtual_tsc(void) {
  unsigned processor;
  const int64_t before = now(), tsc = (int64_t)__rdtscp(&processor), after = now();
  return before <= tsc && tsc <= after;
}

// At one place, often enough for a jump to be there when it is saved.
static __attribute__((noinline)) int64_t read_counter(void) { return (int64_t)__rdtsc(); }
static int reads_through_jump(void) {
  int64_t last = now();
  for (int i = 0; i < 20; ++i) {
    const int64_t tsc = read_counter();
    if (tsc <= last) return 0;
    last = tsc;
  }
  return last <= now();
}

static int has_our_vdso(void) {
  struct timespec t = {0, 0};
  return by_vdso(CLOCK_MONOTONIC, &t) == 0 && ns_of(t) <= now() && now() - ns_of(t) < 1000000;
}

static void look(void) {
  CHECK(is_watched());
  CHECK(has_virtual_tsc());
  CHECK(reads_through_jump());
  CHECK(has_our_vdso());
}

// The program's own prctl refuses these two, so libc's is called, which the library does not wrap.
static void forget_thread(void) {
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  int (*control)(int, ...);
  *(void**)&control = dlvsym(libc, "prctl", "GLIBC_2.2.5");
  CHECK_EQUAL(dlclose(libc), 0);
  CHECK_EQUAL(control(kSetDispatch, 0, 0, 0, 0), 0);
  CHECK_EQUAL(control(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0), 0);
  CHECK(!is_watched());
  CHECK(!has_virtual_tsc());
}

// mov $-38, %eax; ret
static void forget_vdso(void) {
  static const unsigned char kRefuse[] = {0xb8, 0xda, 0xff, 0xff, 0xff, 0xc3};
  CHECK_EQUAL(mprotect(vdso, vdso_size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  memcpy((void*)by_vdso, kRefuse, sizeof kRefuse);
  CHECK_EQUAL(mprotect(vdso, vdso_size, PROT_READ | PROT_EXEC), 0);
  CHECK(!has_our_vdso());
}

static void nap(void) {
  const struct timespec ms = {0, 1000000};
  CHECK_EQUAL(nanosleep(&ms, NULL), 0);
}

// With the argument "looks" it only checks, while the test restores it from a checkpoint.
static int forgets = 1;
static pthread_barrier_t all_looked;

static void* live(void* first) {
  for (int i = 0; i < kRounds; ++i) {
    look();
    pthread_barrier_wait(&all_looked);
    if (forgets) {
      forget_thread();
      if (first != NULL) forget_vdso();
    }
    nap();
  }
  look();
  return NULL;
}

static void live_in_threads(void) {
  pthread_t t[kThreads];
  CHECK_EQUAL(pthread_barrier_init(&all_looked, NULL, kThreads + 1), 0);
  for (int i = 0; i < kThreads; ++i) pthread_create(&t[i], NULL, live, NULL);
  live(t);
  for (int i = 0; i < kThreads; ++i) pthread_join(t[i], NULL);
}

int main(int argc, char** argv) {
  find_vdso();
  forgets = argc < 2 || strcmp(argv[1], "looks") != 0;
  live_in_threads();
  if (argc > 2) {
    printf("executed\n");
    fflush(stdout);
    return 7;
  }
  printf("main\n");
  fflush(stdout);
  for (int executes = 0; executes < 2; ++executes) {
    const pid_t child = fork();
    if (child == 0) {
      live_in_threads();
      if (executes) execl(argv[0], argv[0], forgets ? "forgets" : "looks", "again", (char*)NULL);
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
