// SPDX-License-Identifier: Apache-2.0
// Threads: creation, end, join, detach, cancellation, affinity; C11 threads.
//
// Rules:
// * The kernel thread exists before its slot is runnable, so the turn never goes to a thread that
//   cannot take it (libc's pthread_create allocates, and the allocator may have to wait).
// * The parent assigns the slot, at its own turn (D19).
// * No real call that may block for another slot is made while holding the turn: a real join
//   follows the virtual join and waits only for the kernel.
#include <sched.h>

#include "dmt/base/bound.h"
#include "dmt/base/futex.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/scheduling.h"
#include "runtime/preload/threads/thread_life.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/refusal.h"

namespace crane {
namespace {

constexpr std::uint32_t kFree = 0, kClaimed = 1, kGo = 2;

// The data with which a new thread starts, from a fixed pool. The entry is free again as soon as
// the thread has read it.
struct Start {
  std::atomic<std::uint32_t> state;
  std::uint16_t slot, process;
  bool is_c11;
  ThreadEntry* entry;
  StartRoutine routine;
  void* argument;
  void* stacks;  // its signal stacks
  const filter::Filter* filters;
};
constexpr std::size_t kStartsMax = 64;
constinit Start starts[kStartsMax] = {};

// The size of user space in bytes.
constexpr std::size_t kAddressesMax = std::size_t{1} << 47;

constinit Bound threads_bound{kThreadsMax, "threads of one process, including those not joined",
                              "pthread_create fails (EAGAIN)"};

Start& claim_start() noexcept {
  for (;;) {
    for (Start& s : starts) {
      std::uint32_t free = kFree;
      if (s.state.compare_exchange_strong(free, kClaimed)) return s;
    }
    raw_syscall(SYS_sched_yield);  // a started thread is about to free its entry
  }
}

void* run_thread(void* given) noexcept {
  auto& start = *static_cast<Start*>(given);
  while (start.state.load(std::memory_order_acquire) == kClaimed) {
    futex_wait(&start.state, kClaimed);
  }
  const StartRoutine routine = start.routine;
  void* const argument = start.argument;
  const bool is_c11 = start.is_c11;
  const std::uint16_t slot = start.slot, process = start.process;
  ThreadEntry* const entry = start.entry;
  void* const stacks = start.stacks;
  self.filters = start.filters;
  start.state.store(kFree, std::memory_order_release);
  if (slot == dmt::kNone) return nullptr;  // the table of slots was full
  signal_stack::arm(stacks);
  adopt_slot(slot, process);
  self.entry = entry;
  arm_thread_end();
  {
    Turn turn(Op::kThreadStart);
    dmt::look_for_restore(turn.w);  // it may get the turn without await_turn()'s check
    turn.w.slots[slot].thread_id = self.thread_id;
    entry->thread_id = self.thread_id;
  }
  InsideCrane::set_outside();
  if (!is_c11) return routine(argument);
  const auto c11_routine = reinterpret_cast<thrd_start_t>(reinterpret_cast<void*>(routine));
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(c11_routine(argument)));
}

// Helgrind's pthread_create yields until the new thread runs. The number of yields varies, so they
// are not operations of the server.
constinit thread_local bool creates_in_valgrind = false;

bool is_detached(const pthread_attr_t& attributes) noexcept {
  int state = PTHREAD_CREATE_JOINABLE;
  real::pthread_attr_getdetachstate(&attributes, &state);
  return state == PTHREAD_CREATE_DETACHED;
}

// Whether the stack size exceeds any machine's memory.
bool asks_for_too_much(const pthread_attr_t* a) noexcept {
  std::size_t bytes = 0;
  if (a != nullptr) real::pthread_attr_getstacksize(a, &bytes);
  return bytes >= kAddressesMax;
}

// Handles the error of libc's pthread_create: returns it if the program's attributes or limits are
// the reason.
int refused(int error, const pthread_attr_t* a) noexcept {
  if (error == EAGAIN && !asks_for_too_much(a)) {
    fence_unless_own_limit(error, "the kernel refused a thread on this replica");
  }
  return error;
}

int create(Op op, pthread_t* p, const pthread_attr_t* a, StartRoutine f, void* x,
           bool is_c11) noexcept {
  Scheduling scheduling{};
  bool asks = false;
  pthread_attr_t plain;
  if (a != nullptr && take_scheduling(*a, scheduling)) {
    asks = true;
    if (const int error = check_scheduling(scheduling); error != 0) return error;
    plain = *a;  // the kernel would run it before all other threads
    pthread_attr_setinheritsched(&plain, PTHREAD_INHERIT_SCHED);
    a = &plain;
  }
  void* const stacks = signal_stack::map();
  if (stacks == nullptr) return refused(EAGAIN, nullptr);
  Start& start = claim_start();
  start.stacks = stacks;
  start.filters = self.filters;
  start.routine = f;
  start.argument = x;
  start.is_c11 = is_c11;
  const bool detached = a != nullptr && is_detached(*a);
  pthread_t handle{};
  int error;
  {
    OutsideCrane outside;  // libc allocates in this call
    creates_in_valgrind = in_valgrind;
    error = real::pthread_create(&handle, a, run_thread, &start);
    creates_in_valgrind = false;
  }
  if (error != 0) {
    start.state.store(kFree, std::memory_order_release);
    signal_stack::unmap(stacks);
    return refused(error, a);
  }
  Turn turn(op);
  // Threads that ended but were not joined have an entry, though no slot.
  const bool has_room = has_room_for_thread();
  if (!has_room) threads_bound.count_refusal();
  const Slot slot = has_room ? dmt::create_slot(turn.w, self.process) : dmt::kNoSlot;
  ThreadEntry* entry =
      slot == dmt::kNoSlot ? nullptr : add_thread(turn.w, handle, value(slot), detached);
  start.slot = value(slot);
  start.process = self.process;
  start.entry = entry;
  if (slot != dmt::kNoSlot) {
    turn.w.slots[value(slot)].blocked_signals = turn.w.slots[self.slot].blocked_signals;
    *p = handle;
    inherit_scheduling(turn.w, self.slot, value(slot), false);
    if (asks) set_scheduling(turn.w, value(slot), scheduling);
  }
  if (entry != nullptr) entry->stacks = stacks;
  start.state.store(kGo, std::memory_order_release);
  futex_wake(&start.state, 1);
  turn.result(static_cast<std::uint64_t>(value(slot)));
  yield_to_others(turn);
  if (slot != dmt::kNoSlot) return 0;
  if (!detached) real::pthread_join(handle, nullptr);
  signal_stack::unmap(stacks);
  return EAGAIN;
}

// Joins a thread that has ended for the schedule; only the kernel is still ending it.
int finish_join(Turn& turn, ThreadEntry& entry, void** r) noexcept {
  const pthread_t handle = entry.handle;
  remove_thread(entry);
  turn.result(0);
  return real::pthread_join(handle, r);
}

int join(Turn& turn, pthread_t p, void** r, std::int64_t deadline) noexcept {
  ThreadEntry* entry = find_thread(p);
  if (entry == nullptr) return was_detached(p) ? EINVAL : ESRCH;
  if (entry == self.entry) return EDEADLK;
  if (entry->detached || entry->joining) return EINVAL;
  entry->joining = true;
  while (!entry->finished) {
    const dmt::WakeReason why = turn.wait(entry->exit_object, deadline);
    if (why == dmt::WakeReason::kTimeout) {
      entry->joining = false;
      return ETIMEDOUT;
    }
    if (why == dmt::WakeReason::kInterrupted) {
      entry->joining = false;  // a cancellation does not return from the call
      (void)turn.interrupted(kRestarts);
      entry->joining = true;
    }
  }
  return finish_join(turn, *entry, r);
}

}  // namespace

int create_thread(pthread_t* p, const pthread_attr_t* a, StartRoutine f, void* x) noexcept {
  return create(Op::pthread_create, p, a, f, x, false);
}

namespace wrap {

int pthread_create(pthread_t* p, const pthread_attr_t* a, StartRoutine f, void* x) {
  return create(Op::pthread_create, p, a, f, x, false);
}

int pthread_join(pthread_t p, void** r) {
  Turn turn(Op::pthread_join, Turn::kCancellationPoint);
  const int error = join(turn, p, r, dmt::kNoDeadline);
  turn.result(error);
  return error;
}

int pthread_tryjoin_np(pthread_t p, void** r) {
  Turn turn(Op::pthread_tryjoin_np);
  ThreadEntry* entry = find_thread(p);
  int error = was_detached(p) ? EINVAL : ESRCH;
  if (entry != nullptr && !entry->finished) {
    error = EBUSY;
    turn.yield();
  } else if (entry != nullptr) {
    error = entry->detached || entry->joining ? EINVAL : finish_join(turn, *entry, r);
  }
  turn.result(error);
  return error;
}

int pthread_clockjoin_np(pthread_t p, void** r, clockid_t c, const struct timespec* t) {
  Turn turn(Op::pthread_clockjoin_np, Turn::kCancellationPoint);
  const ThreadEntry* entry = find_thread(p);
  const bool waits = entry != nullptr && !entry->finished && !entry->detached && !entry->joining;
  if (t != nullptr && !is_futex_clock(c)) return EINVAL;
  if (t != nullptr && waits && entry != self.entry && !is_valid(*t)) return EINVAL;
  const std::int64_t deadline = t == nullptr ? dmt::kNoDeadline : deadline_at(turn.w, c, *t);
  const int error = join(turn, p, r, deadline);
  turn.result(error);
  return error;
}

int pthread_timedjoin_np(pthread_t p, void** r, const struct timespec* t) {
  return wrap::pthread_clockjoin_np(p, r, CLOCK_REALTIME, t);
}

int pthread_detach(pthread_t p) {
  Turn turn(Op::pthread_detach);
  ThreadEntry* entry = find_thread(p);
  int error = was_detached(p) ? EINVAL : ESRCH;
  if (entry != nullptr) {
    error = entry->detached ? EINVAL : real::pthread_detach(p);
    if (error == 0) entry->detached = true;
    if (error == 0 && entry->finished) remove_thread(*entry);
  }
  turn.result(error);
  return error;
}

void pthread_exit(void* r) {
  InsideCrane::set_outside();  // clean-up handlers and destructors are the application's
  real::pthread_exit(r);
  __builtin_unreachable();
}

// --- cancellation: pending at the sender's turn, acted on at the target's next point -------------

int pthread_cancel(pthread_t p) {
  Turn turn(Op::pthread_cancel);
  ThreadEntry* entry = find_thread(p);
  if (entry == nullptr) return ESRCH;
  if (!entry->finished) {
    entry->cancel_requested = true;
    dmt::wake(turn.w, Slot{entry->slot}, dmt::WakeReason::kInterrupted);
  }
  return 0;
}

void pthread_testcancel() { cancellation_point(Op::pthread_testcancel); }

int pthread_setcancelstate(int s, int* old) {
  if (s != PTHREAD_CANCEL_ENABLE && s != PTHREAD_CANCEL_DISABLE) return EINVAL;
  if (old != nullptr) *old = self.cancel_disabled ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
  self.cancel_disabled = s == PTHREAD_CANCEL_DISABLE;
  if (self.cancel_asynchronous && !self.cancel_disabled) {
    cancellation_point(Op::pthread_setcancelstate);
  }
  return 0;
}

int pthread_setcanceltype(int s, int* old) {
  if (s != PTHREAD_CANCEL_DEFERRED && s != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  if (old != nullptr) {
    *old = self.cancel_asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
  }
  self.cancel_asynchronous = s == PTHREAD_CANCEL_ASYNCHRONOUS;
  if (self.cancel_asynchronous) cancellation_point(Op::pthread_setcanceltype);
  return 0;
}

// --- signals to threads --------------------------------------------------------------------------

namespace {

int send_to_thread(Op op, pthread_t p, int s, int code, std::uint64_t value) noexcept {
  if (s < 0 || s > 64 || s == 32 || s == 33) return EINVAL;  // these two are libc's own
  Turn turn(op);
  const ThreadEntry* entry = find_thread(p);
  if (entry == nullptr) return ESRCH;
  turn.result(s);
  if (entry->finished || s == 0) return 0;
  const dmt::SignalInfo info = sent_by_this_process(code, value);
  return dmt::send_signal_to_slot(turn.w, Slot{entry->slot}, s, info) ? 0 : EAGAIN;
}

}  // namespace

int pthread_kill(pthread_t p, int s) { return send_to_thread(Op::pthread_kill, p, s, SI_TKILL, 0); }

int pthread_sigqueue(pthread_t p, int s, const union sigval v) {
  return send_to_thread(Op::pthread_sigqueue, p, s, SI_QUEUE, value_of(v));
}

int sched_yield() {
  if (creates_in_valgrind) return static_cast<int>(raw_syscall(SYS_sched_yield));
  Turn turn(Op::sched_yield);
  turn.yield();
  return 0;
}

// --- C11 -----------------------------------------------------------------------------------------

int thrd_create(thrd_t* p, thrd_start_t f, void* x) {
  const auto routine = reinterpret_cast<StartRoutine>(reinterpret_cast<void*>(f));
  const int error = create(Op::thrd_create, p, nullptr, routine, x, true);
  if (error == 0) return thrd_success;
  return error == ENOMEM || error == EAGAIN ? thrd_nomem : thrd_error;
}

int thrd_join(thrd_t p, int* r) {
  void* result = nullptr;
  if (wrap::pthread_join(p, &result) != 0) return thrd_error;
  if (r != nullptr) *r = static_cast<int>(reinterpret_cast<std::intptr_t>(result));
  return thrd_success;
}

int thrd_detach(thrd_t p) { return wrap::pthread_detach(p) == 0 ? thrd_success : thrd_error; }

void thrd_exit(int r) {
  wrap::pthread_exit(reinterpret_cast<void*>(static_cast<std::intptr_t>(r)));
}

void thrd_yield() { wrap::sched_yield(); }

}  // namespace wrap
}  // namespace crane
