/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints of a server to Crane, for C and C++.  They change when threads run, never what they
 * compute.  Without Crane every hint does nothing.  The program links no library: this header looks
 * the functions up once with the dynamic linker.
 *
 *   main:        crane_soft_barrier_init(0, 8, 1000);   // up to 8 threads, for at most 1000 us
 *   each worker: crane_soft_barrier(0); compute();      // computations start together
 *
 * A soft barrier (PARROT; CRANE section 7.4) waits until `count` threads of the process have come,
 * until `timeout_us` of the replicas' virtual time have passed, or until no other thread can come
 * because every thread waits and no input is being processed.  All replicas release it at the same
 * turn.  It helps in parallel mode, where code between operations runs in parallel: if one thread
 * begins a long computation alone, the other threads' operations wait for its next operation.
 *
 * A section (PARROT's performance-critical section) leaves the schedule until its end or until the
 * thread's next call that Crane makes an operation, whichever comes first:
 *
 *   crane_section_begin(); compute(); crane_section_end();
 *
 * Meanwhile no other thread waits for this thread, and it runs beside the others even in serial
 * mode.  What it reads and writes must not race with them.  Its end costs one round of consensus.
 *
 * Threads: any.  Errors: none; a soft barrier that was not set up, or has a number of
 * CRANE_SOFT_BARRIERS or more, does nothing.  libcrane.so provides:
 *   crane_hint_soft_barrier_init(which, count, timeout_us), crane_hint_soft_barrier(which),
 *   crane_hint_section(begins)
 */
#ifndef CRANE_H
#define CRANE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process has the soft barriers 0 to CRANE_SOFT_BARRIERS - 1. */
#define CRANE_SOFT_BARRIERS 16

extern void* dlsym(void* __restrict handle, const char* __restrict name)
#ifdef __cplusplus
    __THROW
#else
    __attribute__((__nothrow__))
#endif
    ;

/* The function of libcrane.so, or null without it. */
static inline void* crane_find(void** found, const char* name) {
  static char nowhere;
  void* at = __atomic_load_n(found, __ATOMIC_RELAXED);
  if (at == NULL) {
    at = dlsym((void*)0 /* RTLD_DEFAULT */, name);
    if (at == NULL) at = &nowhere;
    __atomic_store_n(found, at, __ATOMIC_RELAXED);
  }
  return at == (void*)&nowhere ? NULL : at;
}

static inline void crane_soft_barrier_init(unsigned which, unsigned count, unsigned timeout_us) {
  static void* found;
  union {
    void* pointer;
    void (*call)(unsigned, unsigned, unsigned);
  } at;
  at.pointer = crane_find(&found, "crane_hint_soft_barrier_init");
  if (at.pointer != NULL) at.call(which, count, timeout_us);
}

static inline void crane_soft_barrier(unsigned which) {
  static void* found;
  union {
    void* pointer;
    void (*call)(unsigned);
  } at;
  at.pointer = crane_find(&found, "crane_hint_soft_barrier");
  if (at.pointer != NULL) at.call(which);
}

static inline void crane_section(int begins) {
  static void* found;
  union {
    void* pointer;
    void (*call)(int);
  } at;
  at.pointer = crane_find(&found, "crane_hint_section");
  if (at.pointer != NULL) at.call(begins);
}

static inline void crane_section_begin(void) { crane_section(1); }
static inline void crane_section_end(void) { crane_section(0); }

/* PARROT's names.  Its time-outs count turns; these are taken as microseconds. */
#ifdef CRANE_PARROT_NAMES
#define soba_init(type, count, timeout) crane_soft_barrier_init((type), (count), (timeout))
#define soba_wait(type) crane_soft_barrier(type)
#define soba_destroy(type) crane_soft_barrier_init((type), 0, 0)
#define pcs_enter() crane_section_begin()
#define pcs_exit() crane_section_end()
#define pcs_barrier_exit(bar, count) crane_section_end()
#endif

#ifdef __cplusplus
}
#endif

#endif
