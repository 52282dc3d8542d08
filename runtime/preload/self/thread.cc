// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/thread.h"

#include "dmt/base/raw.h"

namespace crane {

dmt::Layout* segment = nullptr;

namespace {

ThreadEntry threads[kThreadsMax];
// The handles of the last threads that ended detached.
constexpr std::size_t kEndedMax = 64;
pthread_t ended_detached[kEndedMax];
std::size_t next_ended = 0;
std::size_t threads_used = 0;  // one above the highest entry ever used

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
  ending_thread.store(0, std::memory_order_relaxed);  // the parent's thread
  for (std::size_t i = 0; i < threads_used; ++i) {
    if (&threads[i] == self.entry) continue;
    const ThreadEntry& t = threads[i];
    if (t.used && !t.finished && t.stacks != nullptr) signal_stack::unmap(t.stacks);
    threads[i].used = false;
  }
}

void each_living_thread(void (*call)(std::uint32_t thread_id)) noexcept {
  call(self.thread_id);
  for (std::size_t i = 0; i < threads_used; ++i) {
    const ThreadEntry& t = threads[i];
    if (t.used && !t.finished && t.thread_id != 0 && t.thread_id != self.thread_id) {
      call(t.thread_id);
    }
  }
}

}  // namespace crane
