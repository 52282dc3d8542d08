// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's state per thread and per process, in the process' own memory (the scheduler's part
// is in the segment): data and the table of threads. turn.h takes the turns.
//
// Threads: `self` is the thread's own. The table of threads is read and written only while holding
// the turn, except `cancel_requested` of the own entry.
//
// INVARIANT THREAD-1  self.slot != kNone iff the thread may take turns. Without a slot, InsideCrane
//     is set permanently and all its calls are real.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dmt/base/thread_safety.h"
#include "dmt/layout.h"
#include "dmt/stall.h"
#include "runtime/preload/ground/branch_steps.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/self/mapping.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/self/signal_stack.h"

namespace crane {

// A thread that the library created or adopted, until it is joined or has ended detached.
struct ThreadEntry {
  bool used;
  bool finished;
  bool detached;
  bool joining;  // another thread is in pthread_join on it
  bool cancel_requested;
  std::uint16_t slot;
  std::uint32_t thread_id;  // the kernel's; 0 until it ran
  pthread_t handle;
  std::uint64_t exit_object;
  void* stacks;  // its signal stacks (signal_stack.h)
};

inline constexpr std::size_t kThreadsMax = dmt::kSlotsMax;

namespace filter {
struct Filter;
}

struct ThreadBlock {
  std::uint16_t slot = dmt::kNone;
  std::uint16_t process = 0;
  std::uint32_t thread_id = 0;  // gettid(), cached: glibc names mutex owners by it
  std::uint64_t space = 0;      // names the process' private objects
  ThreadEntry* entry = nullptr;
  // virtual time (vtime.h)
  std::int64_t clock_ns = 0;        // last value that the thread read
  std::int64_t wall_offset_ns = 0;  // wall clock minus clock_ns, at its last turn
  std::uint32_t clock_reads = 0;    // since its last turn
  // time slices (tick_points.h)
  std::int64_t slice_left_ps = 0;      // left of the slice; below 0: a tick stops the thread
  std::int64_t slice_rest_ps = 0;      // the slice's parts after slice_left_ps
  std::uint64_t tick_saved = 0;        // a register, saved in a stub
  std::uint64_t slice_operations = 0;  // operations of its slot at the end of its last slice
  std::int64_t slice_began_ns = 0;     // processor time at that end
  std::uint32_t locked_streams = 0;    // locked by flockfile: no slice may end
  branches::ThreadState branches{};
  // IN_* bits that a watch requested when the thread's last operation ended (notify.h)
  std::uint32_t watched_events = 0;
  // virtual cancellation
  std::uint32_t empty_polls = 0;  // consecutive empty polls that did not wait
  bool cancel_disabled = false;
  bool cancel_asynchronous = false;
  bool forking = false;  // between the atfork handlers
  bool holding_for_fork = false;
  // virtual randomness (vrandom.h)
  std::uint32_t random_used = 64;
  std::uint64_t random_counter = 0;
  std::uint32_t random_state[16] = {};
  unsigned char random_bytes[64] = {};
  bool random_ready = false;
  bool known = false;               // has had a slot, or was reported
  const void* caller = nullptr;     // return address of the last wrapped call
  std::uintptr_t caller_stack = 0;  // for vfork: begin of its caller's frames
  std::uint32_t locks = 0;   // mutexes held, roughly: ends the quantum in parallel mode (rule 23)
  dmt::ProbeMemory probe{};  // for the stall rule (probe.cc)
  std::uint64_t home = 0;    // processors to return to; 0: it is there (probe.cc)
  signal_stack::Stacks stacks{};
  ScratchState scratch{};
  const filter::Filter* filters = nullptr;  // seccomp's, the newest (seccomp_check.h)
};

// constinit: reached without a wrapper function or a guard.
inline thread_local constinit ThreadBlock self{};

// The segment of this replica; null before attaching.
extern dmt::Layout* segment CRANE_GUARDED_BY_TURN;

// The segment for a thread that may not hold the turn: for fields marked "any:", constants, its own
// slot, and the descriptors of its own process, which only calls of that process change.
CRANE_TURN_UNCHECKED inline dmt::Layout& without_turn() noexcept { return *segment; }

// Starts a thread's readings of the clock at the time of its turn. REQUIRES the turn.
inline void note_time(const dmt::Layout& w) noexcept {
  self.clock_ns = w.scheduler.now_ns;
  self.wall_offset_ns = w.scheduler.wall_offset_ns;
}

// Whether the thread runs the application's code and has a slot.
inline bool is_outside() noexcept { return self.slot != dmt::kNone && !InsideCrane::inside(); }

inline Slot own_slot() noexcept { return Slot{self.slot}; }

// Whether the program has put this thread into a seccomp sandbox.
inline bool is_filtered() noexcept { return self.filters != nullptr; }

// Names of synchronisation objects: the address within its address space or, if processes share the
// object, the place in the mapped memory (mapping.h; DESIGN D2). The top bit distinguishes them
// from names that the scheduler assigns.
inline std::uint64_t name_of_address(std::uint64_t space, const volatile void* address) noexcept {
  std::uint64_t x = reinterpret_cast<std::uintptr_t>(address) ^ (space * 0x9E3779B97F4A7C15);
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9;
  return (x ^ (x >> 29)) | (1ull << 63);
}
inline std::uint64_t object_of(const volatile void* address, bool shared) noexcept {
  return shared ? name_of_shared(address) : name_of_address(self.space, address);
}

inline bool is_parallel() noexcept {
  return without_turn().header.configuration.mode == dmt::Mode::kParallel;
}

// --- the table of threads (REQUIRES the turn) ----------------------------------------------------

bool has_room_for_thread() noexcept;
// Whether the thread recently ended detached. Calls on it get EINVAL, as from libc, which still has
// its memory.
bool was_detached(pthread_t handle) noexcept;
// Returns a new entry, or null when there are kThreadsMax.
ThreadEntry* add_thread(const dmt::Layout& w, pthread_t handle, std::uint16_t slot,
                        bool detached) noexcept;
ThreadEntry* find_thread(pthread_t handle) noexcept;
ThreadEntry* find_thread_by_id(std::uint32_t thread_id) noexcept;
void remove_thread(ThreadEntry& entry) noexcept;
// Called in the child of fork, which has one thread.
void forget_other_threads() noexcept;

// Calls `call` with the kernel's id of each living thread of this process, the caller's first.
void each_living_thread(void (*call)(std::uint32_t thread_id)) noexcept;

// --- the end of a thread -------------------------------------------------------------------------

// A thread that has ended for the schedule stays in libc for a while to free its memory, arena and
// stack. In serial mode, no thread of its process continues before it has left the kernel, so that
// addresses depend only on the schedule.
extern std::atomic<std::uint32_t> ending_thread;  // its id; 0 = none
void wait_for_ending_thread() noexcept;
inline void release_ending_thread() noexcept {
  if (ending_thread.load(std::memory_order_relaxed) != 0) wait_for_ending_thread();
}
}  // namespace crane
