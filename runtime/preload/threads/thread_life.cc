// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/threads/thread_life.h"

#include "dmt/base/assert.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/scheduler.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/threads/robust_mutexes.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/vdso.h"
#include "runtime/preload/turn/branch_slices.h"
#include "runtime/preload/turn/tick_points.h"
#include "runtime/preload/turn/turn.h"
#include "runtime/preload/turn/vrandom.h"

namespace crane {
namespace {

pthread_key_t end_key;
bool end_key_made = false;

// libc runs the destructors of thread-specific data in at most this many rounds; ours acts in the
// last.
constexpr std::uintptr_t kRounds = 4;

// Ends the calling thread for the schedule. Its end in the kernel needs no turn. The thread keeps
// the turn of its Turn, which is dismissed.
CRANE_TURN_UNCHECKED void end_thread() noexcept {
  InsideCrane::set_inside();
  Turn turn(Op::kThreadEnd);
  if (turn.w.processes[self.process].slots == 1) {
    // The last thread ends the process, as libc would a little later.
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
  // The first thread stays in the kernel until the process ends, so no thread can wait for its end.
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

// Called once per round; ends the thread in the last one, after all other destructors.
void end_key_destructor(void* value) noexcept {
  if (self.slot == dmt::kNone) return;
  const std::uintptr_t round = reinterpret_cast<std::uintptr_t>(value);
  if (round < kRounds) {
    real::pthread_setspecific(end_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  end_thread();
}

}  // namespace

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
              << " was not started through libcrane.so: its calls are not in the schedule";
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

}  // namespace crane
