// SPDX-License-Identifier: Apache-2.0
// Condition variables, barriers and guards of static variables. They are wholly virtual; libc's
// object holds only the attributes (clock, process-shared) or a few words of ours.
#include <sched.h>

#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::wrap {
namespace {

// Bits of glibc's __wrefs, set by its pthread_cond_init, which stores the clock there (trap 13).
constexpr unsigned kCondShared = 1, kCondMonotonic = 2;

std::uint64_t object_of_condition(const pthread_cond_t* c) noexcept {
  return object_of(c, (c->__data.__wrefs & kCondShared) != 0);
}

bool is_shared(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & 128) != 0; }

// Takes the mutex again before anything else happens, also before a cancellation. Runs in the turn
// of its caller.
CRANE_TURN_UNCHECKED int relock(Turn& turn, pthread_mutex_t* m) noexcept {
  const std::uint64_t object = object_of(m, is_shared(m));
  int error;
  int failures = 0;
  for (;;) {
    error = is_reserved_for_another(object) ? EBUSY : real::pthread_mutex_trylock(m);
    if (error != EBUSY) break;
    note_failure(object, failures);
    // Signals wait until this thread has the mutex: their handlers run at the end of the operation.
    (void)wait_for_turn(object, dmt::kNoDeadline, Op::pthread_cond_wait);
  }
  if (failures >= kPatience) end_reservation(turn.w, object, false);
  return error;
}

int wait_for_condition(Op op, pthread_cond_t* c, pthread_mutex_t* m,
                       std::int64_t (*deadline)(const dmt::Layout&, clockid_t,
                                                const struct timespec&),
                       clockid_t clock, const struct timespec* time) noexcept {
  if (time != nullptr && (!is_futex_clock(clock) || !is_valid(*time))) return EINVAL;
  bool cancelled = false;
  int result = 0;
  {
    Turn turn(op);
    const std::uint64_t object = object_of_condition(c);
    const std::int64_t until = time == nullptr ? dmt::kNoDeadline : deadline(turn.w, clock, *time);
    cancelled = cancellation_due();
    if (!cancelled) {
      const int error = real::pthread_mutex_unlock(m);
      if (error != 0) {
        turn.result(error);
        return error;
      }
      const std::uint64_t mutex = object_of(m, is_shared(m));
      dmt::signal(turn.w, mutex, waiters_to_wake(mutex));
      const dmt::WakeReason why = turn.wait(object, until);
      if (why == dmt::WakeReason::kTimeout) result = ETIMEDOUT;
      if (why == dmt::WakeReason::kInterrupted) {
        cancelled = cancellation_due();
        // The handler runs without the mutex, so a signal of the condition may be missed meanwhile.
        // The call then returns as a spurious wake-up, which POSIX allows.
        if (!cancelled) (void)turn.interrupted(kRestarts);
      }
      const int relocked = relock(turn, m);
      if (relocked != 0) result = relocked;
    }
    turn.result(result);
    if (cancelled) turn.put();
  }
  if (cancelled) cancel_self();
  return result;
}

}  // namespace

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return wait_for_condition(Op::pthread_cond_wait, c, m, nullptr, CLOCK_MONOTONIC, nullptr);
}

int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const struct timespec* t) {
  const bool monotonic = (c->__data.__wrefs & kCondMonotonic) != 0;
  return wait_for_condition(Op::pthread_cond_timedwait, c, m, deadline_at,
                            monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, t);
}

int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t k,
                           const struct timespec* t) {
  return wait_for_condition(Op::pthread_cond_clockwait, c, m, deadline_at, k, t);
}

int pthread_cond_signal(pthread_cond_t* c) {
  Turn turn(Op::pthread_cond_signal);
  const std::uint32_t woken = dmt::signal(turn.w, object_of_condition(c), 1);
  turn.result(static_cast<std::uint64_t>(woken));
  if (woken > 0 && self.locks == 0) yield_to_others(turn);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* c) {
  Turn turn(Op::pthread_cond_broadcast);
  const std::uint32_t woken = dmt::signal(turn.w, object_of_condition(c), dmt::kAll);
  turn.result(static_cast<std::uint64_t>(woken));
  if (woken > 0 && self.locks == 0) yield_to_others(turn);
  return 0;
}

int pthread_cond_init(pthread_cond_t* c, const pthread_condattr_t* a) {
  return real::pthread_cond_init(c, a);
}

int pthread_cond_destroy(pthread_cond_t* c) { return real::pthread_cond_destroy(c); }

// --- barriers ------------------------------------------------------------------------------------

namespace {
struct VirtualBarrier {
  std::uint32_t count, arrived;
  std::uint64_t round;
  std::uint32_t shared;
};
static_assert(sizeof(VirtualBarrier) <= sizeof(pthread_barrier_t));

VirtualBarrier& virtual_barrier(pthread_barrier_t* b) noexcept {
  return *reinterpret_cast<VirtualBarrier*>(b);
}
}  // namespace

int pthread_barrier_init(pthread_barrier_t* b, const pthread_barrierattr_t* a, unsigned n) {
  // libc checks the arguments; its layout has `shared` after three words.
  const int error = real::pthread_barrier_init(b, a, n);
  if (error != 0) return error;
  std::uint32_t words[5];
  std::memcpy(words, b, sizeof words);
  Turn turn(Op::pthread_barrier_init);
  virtual_barrier(b) = {n, 0, 0, words[3]};
  return 0;
}

int pthread_barrier_destroy(pthread_barrier_t* b) {
  Turn turn(Op::pthread_barrier_destroy);
  const int error = virtual_barrier(b).arrived == 0 ? 0 : EBUSY;
  turn.result(error);
  return error;
}

int pthread_barrier_wait(pthread_barrier_t* b) {
  Turn turn(Op::pthread_barrier_wait);
  VirtualBarrier& barrier = virtual_barrier(b);
  const std::uint64_t object = object_of(b, barrier.shared != 0);
  if (++barrier.arrived == barrier.count) {
    barrier.arrived = 0;
    ++barrier.round;
    dmt::signal(turn.w, object, dmt::kAll);
    turn.result(1);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  const std::uint64_t round = barrier.round;
  while (barrier.round == round) block(turn, object);
  return 0;
}

// --- guards of C++ static variables (trap 2): byte 0 = done (the ABI), byte 1 = in progress ------

namespace {
unsigned char* bytes_of(long long* guard) noexcept {
  return reinterpret_cast<unsigned char*>(guard);
}
}  // namespace

int __cxa_guard_acquire(long long* g) {
  unsigned char* byte = bytes_of(g);
  if (InsideCrane::inside()) {
    for (;;) {
      if (__atomic_load_n(&byte[0], __ATOMIC_ACQUIRE) != 0) return 0;
      if (__atomic_exchange_n(&byte[1], 1, __ATOMIC_ACQ_REL) == 0) return 1;
      raw_syscall(SYS_sched_yield);
    }
  }
  InsideCrane inside;
  Turn turn(Op::__cxa_guard_acquire);
  while (byte[1] != 0 && byte[0] == 0) block(turn, object_of(g, false));
  if (byte[0] != 0) return 0;
  byte[1] = 1;
  turn.result(1);
  return 1;
}

int __cxa_guard_release(long long* g) {
  unsigned char* byte = bytes_of(g);
  if (InsideCrane::inside()) {
    __atomic_store_n(&byte[0], 1, __ATOMIC_RELEASE);
    __atomic_store_n(&byte[1], 0, __ATOMIC_RELEASE);
    return 0;
  }
  InsideCrane inside;
  Turn turn(Op::__cxa_guard_release);
  __atomic_store_n(&byte[0], 1, __ATOMIC_RELEASE);
  byte[1] = 0;
  dmt::signal(turn.w, object_of(g, false), dmt::kAll);
  return 0;
}

int __cxa_guard_abort(long long* g) {
  unsigned char* byte = bytes_of(g);
  if (InsideCrane::inside()) {
    __atomic_store_n(&byte[1], 0, __ATOMIC_RELEASE);
    return 0;
  }
  InsideCrane inside;
  Turn turn(Op::__cxa_guard_abort);
  byte[1] = 0;
  dmt::signal(turn.w, object_of(g, false), dmt::kAll);
  return 0;
}

}  // namespace crane::wrap
