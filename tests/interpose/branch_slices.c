// SPDX-License-Identifier: Apache-2.0
// Slices that end at counts of branches. One of two threads runs code generated at run time; the
// other sees, each time, where the first was interrupted. Meanwhile the second thread enters Crane
// in all ways (calls, system calls that bypass libc, RDTSC, faults, fork) and checks whether it is
// single-stepped.
// native: no
// solo: --slices 50:counter
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "branches.h"
#include "check.h"

enum { kRounds = 600000, kStepFlag = 0x100 };

// void made(struct branches* own, uint64_t rounds, volatile uint64_t* left): each round is a
// branch.
static const unsigned char kMade[] = {
    0x48, 0x83, 0x07, 0x01,  // 0: add qword [rdi], 1
    0x48, 0x8b, 0x07,        // 4: mov rax, [rdi]
    0x48, 0x3b, 0x47, 0x08,  //    cmp rax, [rdi + 8]
    0x74, 0xf7,              //    je 4
    0x48, 0x89, 0x32,        //    mov [rdx], rsi
    0x48, 0xff, 0xce,        //    dec rsi
    0x75, 0xeb,              //    jne 0
    0xc3,
};
typedef void (*made_code)(struct branches*, uint64_t, volatile uint64_t*);

static volatile uint64_t left_of_other = kRounds;
static volatile int faults, flags_seen;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* compute(void* code) {
  ((made_code)code)(own_branches(), kRounds, &left_of_other);
  left_of_other = 0;
  return NULL;
}

static void on_fault(int signo, siginfo_t* info, void* given) {
  ucontext_t* context = given;
  (void)signo;
  (void)info;
  faults++;
  if ((context->uc_mcontext.gregs[REG_EFL] & kStepFlag) != 0) flags_seen++;
  for (int i = 0; i < 50; ++i) branch(own_branches());
  context->uc_mcontext.gregs[REG_RIP] += 2;  // ud2
}

static uint64_t own_flags(void) {
  uint64_t flags;
  __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; pop %0; lea 128(%%rsp), %%rsp" : "=r"(flags));
  return flags;
}

static long by_instruction(long number) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
  return result;
}

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

static void child(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 100000; ++i) branch(own_branches());
    _exit(7);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

// Enters Crane in alternating ways.
static void enter(int round) {
  static int numbers[64];
  switch (round % 6) {
    case 0:
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
      break;
    case 1:
      CHECK(by_instruction(SYS_getppid) >= 0);
      break;
    case 2:
      (void)__builtin_ia32_rdtsc();
      break;
    case 3:
      __asm__ volatile("ud2");
      break;
    case 4:
      for (int i = 0; i < 64; ++i) numbers[i] = (i * 37 + round) % 64;
      qsort(numbers, 64, sizeof numbers[0], compare);
      break;
    default:
      (void)getppid();
      break;
  }
}

int main(void) {
  branches_prepare();
  struct sigaction action = {0};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGILL, &action, NULL) == 0);
  void* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  memcpy(code, kMade, sizeof kMade);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, compute, code) == 0);
  uint64_t hash = 0, seen = kRounds;
  int turns = 0, round = 0;
  while (left_of_other != 0) {
    branch(own_branches());
    if ((own_flags() & kStepFlag) != 0) flags_seen++;
    if (left_of_other != seen) {
      seen = left_of_other;
      hash = hash * 31 + seen * 1009 + (uint64_t)round;
      turns++;
    }
    if (++round % 97 == 0) enter(round / 97);
    if (round == 5000) child();
  }
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(flags_seen == 0);
  printf("%d times, %d rounds, %d faults: %016llx\n", turns, round, faults,
         (unsigned long long)hash);
  return 0;
}
