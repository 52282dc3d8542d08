// SPDX-License-Identifier: Apache-2.0
// Affinities: kept per thread and read back as they were set, of the processors that every replica
// claims to have.  Where a thread really runs is the group's affair (placement by profile).
#include <cstring>

#include "dmt/processes.h"
#include "runtime/preload/core/machine.h"
#include "runtime/preload/core/turn.h"
#include "runtime/preload/core/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/thread.h"

namespace crane::wrap {
namespace {

constexpr std::uint64_t kAll = (1ull << kProcessors) - 1;

// An error number.
int set_affinity(ThreadEntry& thread, std::size_t n, const cpu_set_t* s) noexcept {
  if (s == nullptr) return EFAULT;
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, s, n < sizeof wanted ? n : sizeof wanted);
  wanted &= kAll;
  if (wanted == 0) return EINVAL;
  thread.affinity = wanted;
  return 0;
}

int get_affinity(const ThreadEntry* thread, std::size_t n, cpu_set_t* s) noexcept {
  if (n < sizeof(unsigned long) || n % sizeof(unsigned long) != 0) return EINVAL;
  const std::uint64_t set = thread == nullptr || thread->affinity == 0 ? kAll : thread->affinity;
  std::memset(s, 0, n);
  std::memcpy(s, &set, sizeof set);
  return 0;
}

// A thread of this process, or none for another process'.  An error number.
int find(const dmt::Layout& w, pid_t p, ThreadEntry*& thread) noexcept {
  thread = p == 0 ? self.entry : find_thread_by_id(static_cast<std::uint32_t>(p));
  if (thread != nullptr) return 0;
  const bool exists =
      p > 0 && dmt::find_process(w, static_cast<std::uint32_t>(p)) != dmt::kNoProcess;
  return exists ? 0 : ESRCH;
}

}  // namespace

int pthread_setaffinity_np(pthread_t p, size_t n, const cpu_set_t* s) {
  Turn turn(Op::pthread_setaffinity_np);
  ThreadEntry* thread = find_thread(p);
  return thread == nullptr ? ESRCH : set_affinity(*thread, n, s);
}

int pthread_getaffinity_np(pthread_t p, size_t n, cpu_set_t* s) {
  Turn turn(Op::pthread_getaffinity_np);
  const ThreadEntry* thread = find_thread(p);
  return thread == nullptr ? ESRCH : get_affinity(thread, n, s);
}

// Another process' is checked and not kept.
int sched_setaffinity(pid_t p, size_t n, const cpu_set_t* s) {
  Turn turn(Op::sched_setaffinity);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  if (thread == nullptr && !may_signal(static_cast<std::uint32_t>(p), 0)) return fail(EPERM);
  ThreadEntry others{};
  const int error = set_affinity(thread == nullptr ? others : *thread, n, s);
  return error == 0 ? 0 : fail(error);
}

int sched_getaffinity(pid_t p, size_t n, cpu_set_t* s) {
  Turn turn(Op::sched_getaffinity);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  const int error = get_affinity(thread, n, s);
  return error == 0 ? 0 : fail(error);
}

}  // namespace crane::wrap
