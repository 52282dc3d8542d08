// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/threads/thread.h"

#include <linux/futex.h>

#include "dmt/base/assert.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/scheduler.h"
#include "runtime/preload/core/inside.h"
#include "runtime/preload/core/real.h"
#include "runtime/preload/core/turn.h"
#include "runtime/preload/time/vrandom.h"
#include "runtime/preload/trap/branch_slices.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/tick_points.h"
#include "runtime/preload/trap/vdso.h"

namespace crane {

dmt::Layout* segment = nullptr;

namespace {

ThreadEntry threads[kThreadsMax];
// The last that ended detached.
constexpr std::size_t kEndedMax = 64;
pthread_t ended_detached[kEndedMax];
std::size_t next_ended = 0;
std::size_t threads_used = 0;  // one above the highest entry ever used

pthread_key_t end_key;
bool end_key_made = false;

// libc runs the destructors of thread-specific data in at most this many rounds; the last is ours.
constexpr std::uintptr_t kRounds = 4;

// Ends the calling thread for the schedule; its kernel end follows without anybody's turn.  It
// leaves with the turn of its Turn, which is dismissed.
CRANE_TURN_UNCHECKED void end_thread() noexcept {
  InsideCrane::set_inside();
  Turn turn(Op::kThreadEnd);
  if (turn.w.processes[self.process].slots == 1) {
    // The last thread: the process ends, as libc would say a little later.
    turn.put();
    InsideCrane::set_outside();
    real::exit(0);
  }
  release_robust_mutexes(self.thread_id);
  ThreadEntry* entry = self.entry;
  if (entry != nullptr) {
    entry->finished = true;
    dmt::signal(turn.w, entry->exit_object, dmt::kAll);
    if (entry->detached) remove_thread(*entry);
  }
  // The first thread stays in the kernel until the process ends: nobody can wait for it.
  const bool leaves_kernel = self.thread_id != static_cast<std::uint32_t>(raw_syscall(SYS_getpid));
  if (!is_parallel() && leaves_kernel) {
    ending_thread.store(self.thread_id, std::memory_order_relaxed);
  }
  signal_stack::disarm();
  const Slot me = own_slot();
  dmt::Layout& w = turn.w;
  turn.dismiss();
  dmt::release_slot(w, me);
  dmt::leave(w, me);
  abandon_slot();
}

// Called once per round: the thread ends in the last, after everybody else's destructors.
void end_key_destructor(void* value) noexcept {
  if (self.slot == dmt::kNone) return;
  const std::uintptr_t round = reinterpret_cast<std::uintptr_t>(value);
  if (round < kRounds) {
    real::pthread_setspecific(end_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  end_thread();
}

bool is_shared_mutex(const pthread_mutex_t* m) noexcept { return (m->__data.__kind & 128) != 0; }

}  // namespace

constinit std::atomic<std::uint32_t> ending_thread{0};

void wait_for_ending_thread() noexcept {
  const std::uint32_t id = ending_thread.load(std::memory_order_relaxed);
  const long pid = raw_syscall(SYS_getpid);
  while (raw_syscall(SYS_tgkill, pid, id, 0) == 0) raw_syscall(SYS_sched_yield);
  ending_thread.store(0, std::memory_order_relaxed);
}

bool has_room_for_thread() noexcept {
  for (std::size_t i = 0; i < kThreadsMax; ++i) {
    if (i >= threads_used || !threads[i].used) return true;
  }
  return false;
}

ThreadEntry* add_thread(const dmt::Layout& w, pthread_t handle, std::uint16_t slot,
                        bool detached) noexcept {
  std::size_t i = 0;
  while (i < threads_used && threads[i].used) ++i;
  if (i == kThreadsMax) return nullptr;
  if (i == threads_used) ++threads_used;
  threads[i] = {};
  threads[i].used = true;
  threads[i].detached = detached;
  threads[i].slot = slot;
  threads[i].handle = handle;
  threads[i].exit_object = w.slots[slot].exit_object;
  return &threads[i];
}

ThreadEntry* find_thread(pthread_t handle) noexcept {
  for (std::size_t i = 0; i < threads_used; ++i) {
    if (threads[i].used && pthread_equal(threads[i].handle, handle)) return &threads[i];
  }
  return nullptr;
}

bool was_detached(pthread_t handle) noexcept {
  for (const pthread_t ended : ended_detached) {
    if (ended != 0 && pthread_equal(ended, handle)) return true;
  }
  return false;
}

void remove_thread(ThreadEntry& entry) noexcept {
  entry.used = false;
  if (entry.detached) ended_detached[next_ended++ % kEndedMax] = entry.handle;
}

ThreadEntry* find_thread_by_id(std::uint32_t thread_id) noexcept {
  for (std::size_t i = 0; i < threads_used; ++i) {
    const ThreadEntry& t = threads[i];
    if (t.used && !t.finished && t.thread_id == thread_id) return &threads[i];
  }
  return nullptr;
}

void forget_other_threads() noexcept {
  ending_thread.store(0, std::memory_order_relaxed);  // it was the parent's
  for (std::size_t i = 0; i < threads_used; ++i) {
    if (&threads[i] == self.entry) continue;
    const ThreadEntry& t = threads[i];
    if (t.used && !t.finished && t.stacks != nullptr) signal_stack::unmap(t.stacks);
    threads[i].used = false;
  }
}

void adopt_slot(std::uint16_t slot, std::uint16_t process) noexcept {
  ticks::begin_slice(without_turn());
  self.slot = slot;
  self.known = true;
  self.process = process;
  self.thread_id = static_cast<std::uint32_t>(raw_syscall(SYS_gettid));
  self.space = without_turn().processes[process].space;
  self.clock_reads = 0;
  restart_random();
  leave_rseq();
  arm_trap();
  branches::open_for_thread();
}

void abandon_slot() noexcept {
  self.slot = dmt::kNone;
  self.entry = nullptr;
  InsideCrane::set_inside();
  branches::close_for_thread();
}

void report_stray_thread(const void* caller) noexcept {
  self.known = true;
  {
    Message() << "thread " << raw_syscall(SYS_gettid)
              << " was not started through libcrane.so: what it does is not in the schedule";
  }
  count_by_number(SYS_clone3, dmt::Outcome::kPassed, caller);
}

void prepare_thread_end() noexcept {
  if (end_key_made) return;
  end_key_made = real::pthread_key_create(&end_key, end_key_destructor) == 0;
  CRANE_ASSERT(end_key_made);
}

void arm_thread_end() noexcept {
  real::pthread_setspecific(end_key, reinterpret_cast<void*>(std::uintptr_t{1}));
}

namespace {

// For visits by functions that hold the turn.
CRANE_TURN_UNCHECKED void wake_waiters_of(const std::uint32_t* word) noexcept {
  const auto* mutex = reinterpret_cast<const pthread_mutex_t*>(word);
  dmt::signal(*segment, object_of(mutex, is_shared_mutex(mutex)), dmt::kAll);
}

// Visits the words of a thread's robust mutexes; returns the head of its list, or null.
template <typename Visit>
struct robust_list_head* each_robust_mutex(std::uint32_t thread_id, Visit visit) noexcept {
  struct robust_list_head* head = nullptr;
  std::size_t size = 0;
  if (raw_syscall(SYS_get_robust_list, thread_id, &head, &size) < 0) return nullptr;
  if (head == nullptr) return nullptr;
  constexpr int kLinksMax = 2048;  // as the kernel's bound against rings
  struct robust_list* link = head->list.next;
  for (int i = 0; i < kLinksMax && link != nullptr; ++i) {
    // Bit 0 of a link tells priority-inheriting mutexes.
    auto* at = reinterpret_cast<struct robust_list*>(reinterpret_cast<std::uintptr_t>(link) & ~1ul);
    if (at == &head->list) break;
    auto* word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(at) + head->futex_offset);
    struct robust_list* next = at->next;  // before another thread may use the mutex
    visit(word);
    link = next;
  }
  return head;
}

// Calls for each thread of the process that lives.
template <typename Call>
void each_living_thread(Call call) noexcept {
  call(self.thread_id);
  for (std::size_t i = 0; i < threads_used; ++i) {
    const ThreadEntry& t = threads[i];
    if (t.used && !t.finished && t.thread_id != 0 && t.thread_id != self.thread_id) {
      call(t.thread_id);
    }
  }
}

}  // namespace

void release_robust_mutexes(std::uint32_t thread_id) noexcept {
  struct robust_list_head* const head = each_robust_mutex(thread_id, [=](std::uint32_t* word) {
    std::uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((seen & FUTEX_TID_MASK) == thread_id) {
      const std::uint32_t dead = (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
      if (__atomic_compare_exchange_n(word, &seen, dead, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
        wake_waiters_of(word);
        break;
      }
    }
  });
  // The kernel finds nothing left to do at the thread's real end.
  if (head != nullptr) head->list.next = &head->list;
}

void release_robust_mutexes_of_process() noexcept { each_living_thread(release_robust_mutexes); }

void wake_waiters_of_robust_mutexes() noexcept {
  each_living_thread([](std::uint32_t thread_id) {
    each_robust_mutex(thread_id, [](const std::uint32_t* word) { wake_waiters_of(word); });
  });
}

}  // namespace crane
