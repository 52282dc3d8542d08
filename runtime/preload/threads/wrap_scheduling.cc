// SPDX-License-Identifier: Apache-2.0
// Scheduling policies, priorities and affinities. They are kept per thread in the segment and read
// back as they were set, also by other processes. They have no effect: the schedule decides the
// order of turns, and the group decides the placement. The kernel does not get them, because a
// real-time thread would keep the other threads of the replica from their processor.
#include <sched.h>
#include <sys/resource.h>

#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/machine.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/scheduling.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

constexpr int kPriorityMost = 99;
constexpr long kRoundRobinNs = 100'000'000;  // the kernel's slice of SCHED_RR
constexpr long kFairNs = 4'000'000;

bool is_real_time(int policy) noexcept { return policy == SCHED_FIFO || policy == SCHED_RR; }

bool is_privileged(int priority) noexcept {
  if (raw_syscall(SYS_geteuid) == 0) return true;
  rlimit limit{};
  raw_syscall(SYS_prlimit64, 0, RLIMIT_RTPRIO, nullptr, &limit);
  return static_cast<rlim_t>(priority) <= limit.rlim_cur;
}

}  // namespace

int check_scheduling(const Scheduling& wanted) noexcept {
  const int policy = wanted.policy & ~SCHED_RESET_ON_FORK;
  const bool known = is_real_time(policy) || policy == SCHED_OTHER || policy == SCHED_BATCH ||
                     policy == SCHED_IDLE;
  const int least = is_real_time(policy) ? 1 : 0, most = is_real_time(policy) ? kPriorityMost : 0;
  if (!known || wanted.priority < least || wanted.priority > most) return EINVAL;
  return is_real_time(policy) && !is_privileged(wanted.priority) ? EPERM : 0;
}

bool take_scheduling(const pthread_attr_t& attributes, Scheduling& wanted) noexcept {
  int inherits = PTHREAD_INHERIT_SCHED;
  sched_param parameters{};
  pthread_attr_getinheritsched(&attributes, &inherits);
  if (inherits != PTHREAD_EXPLICIT_SCHED) return false;
  pthread_attr_getschedpolicy(&attributes, &wanted.policy);
  pthread_attr_getschedparam(&attributes, &parameters);
  wanted.priority = parameters.sched_priority;
  return true;
}

namespace {

// Returns the scheduling of a living thread of this process, or null.
dmt::ThreadScheduling* scheduling_of(dmt::Layout& w, pthread_t p) noexcept {
  const ThreadEntry* thread = find_thread(p);
  return thread == nullptr || thread->finished ? nullptr : &w.scheduling[thread->slot];
}

// Finds the thread that sched_*(p) names: the caller, or a thread of any process by its number.
// Returns 0 and `slot`, or an error number. To change another process' thread, the caller must be
// permitted to signal it.
int find(const dmt::Layout& w, pid_t p, bool changes, std::uint16_t& slot) noexcept {
  if (p < 0) return EINVAL;
  slot = self.slot;
  if (p == 0) return 0;
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const dmt::SlotRecord& s = w.slots[i];
    if (!dmt::is_alive(s) || s.thread_id != static_cast<std::uint32_t>(p)) continue;
    slot = i;
    const bool permitted =
        s.process == self.process || !changes || may_signal(static_cast<std::uint32_t>(p), 0);
    return permitted ? 0 : EPERM;
  }
  return ESRCH;
}

void put(dmt::ThreadScheduling& s, const Scheduling& wanted) noexcept {
  s.policy = static_cast<std::uint8_t>(wanted.policy & ~SCHED_RESET_ON_FORK);
  s.priority = static_cast<std::uint8_t>(wanted.priority);
  s.resets_on_fork = (wanted.policy & SCHED_RESET_ON_FORK) != 0;
}

// Returns an error number.
int set(dmt::ThreadScheduling& s, const Scheduling& wanted) noexcept {
  const int error = check_scheduling(wanted);
  if (error == 0) put(s, wanted);
  return error;
}

int policy_of(const dmt::ThreadScheduling& s) noexcept {
  return s.policy | (s.resets_on_fork ? SCHED_RESET_ON_FORK : 0);
}

int answer(int error) noexcept { return error == 0 ? 0 : fail(error); }

// find() for the calls about affinity, for which a negative number names no process.
int find_for_affinity(const dmt::Layout& w, pid_t p, bool changes, std::uint16_t& slot) noexcept {
  return p < 0 ? ESRCH : find(w, p, changes, slot);
}

// --- affinity ------------------------------------------------------------------------------------

constexpr std::uint64_t kAllProcessors = (1ull << kProcessors) - 1;

// Returns an error number.
int set_affinity(dmt::ThreadScheduling& s, std::size_t n, const cpu_set_t* set) noexcept {
  if (set == nullptr) return EFAULT;
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, set, n < sizeof wanted ? n : sizeof wanted);
  wanted &= kAllProcessors;
  if (wanted == 0) return EINVAL;
  s.affinity = wanted;
  return 0;
}

std::uint64_t affinity_of(const dmt::ThreadScheduling& s) noexcept {
  return s.affinity == 0 ? kAllProcessors : s.affinity;
}

int get_affinity(const dmt::ThreadScheduling& s, std::size_t n, cpu_set_t* out) noexcept {
  if (n < sizeof(unsigned long) || n % sizeof(unsigned long) != 0) return EINVAL;
  const std::uint64_t set = affinity_of(s);
  std::memset(out, 0, n);
  std::memcpy(out, &set, sizeof set);
  return 0;
}

// --- sched_setattr and sched_getattr -------------------------------------------------------------

struct Attributes {  // struct sched_attr
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};
constexpr std::size_t kAttributesBytes = 48;
static_assert(sizeof(Attributes) == kAttributesBytes);

}  // namespace

void inherit_scheduling(dmt::Layout& w, std::uint16_t from, std::uint16_t to, bool forks) noexcept {
  const dmt::ThreadScheduling& s = w.scheduling[from];
  w.scheduling[to] = s;
  if (!forks || !s.resets_on_fork) return;
  if (is_real_time(s.policy)) w.scheduling[to].policy = w.scheduling[to].priority = 0;
  w.scheduling[to].resets_on_fork = false;
}

void set_scheduling(dmt::Layout& w, std::uint16_t slot, const Scheduling& wanted) noexcept {
  put(w.scheduling[slot], wanted);
}

long get_attributes_by_number(const long* a) noexcept {
  auto* out = reinterpret_cast<void*>(a[1]);
  const auto size = static_cast<std::size_t>(a[2]);
  if (out == nullptr || size < kAttributesBytes || a[3] != 0) return -EINVAL;
  Turn turn(Op::sched_getscheduler);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, static_cast<pid_t>(a[0]), false, slot); error != 0) {
    return -error;
  }
  const dmt::ThreadScheduling& s = turn.w.scheduling[slot];
  Attributes now{};
  now.size = kAttributesBytes;
  now.policy = s.policy;
  now.flags = s.resets_on_fork ? 1 : 0;
  const auto thread = static_cast<unsigned>(a[0]);
  now.nice = static_cast<std::int32_t>(20 - raw_syscall(SYS_getpriority, PRIO_PROCESS, thread));
  now.priority = s.priority;
  std::memcpy(out, &now, sizeof now);
  return 0;
}

long set_attributes_by_number(const long* a) noexcept {
  if (a[1] == 0 || a[2] != 0) return -EINVAL;
  Attributes wanted;
  std::memcpy(&wanted, reinterpret_cast<const void*>(a[1]), sizeof wanted);
  constexpr std::uint64_t kResets = 1;
  if ((wanted.flags & ~kResets) != 0) return -EINVAL;
  Turn turn(Op::sched_setscheduler);
  std::uint16_t slot = 0;
  const auto p = static_cast<pid_t>(a[0]);
  if (const int error = find(turn.w, p, true, slot); error != 0) return -error;
  const int policy =
      static_cast<int>(wanted.policy) | (wanted.flags != 0 ? SCHED_RESET_ON_FORK : 0);
  if (const int error = set(turn.w.scheduling[slot], {policy, static_cast<int>(wanted.priority)});
      error != 0) {
    return -error;
  }
  if (is_real_time(static_cast<int>(wanted.policy))) return 0;
  return raw_syscall(SYS_setpriority, PRIO_PROCESS, p, wanted.nice);
}

namespace wrap {

int pthread_setschedparam(pthread_t p, int k, const struct sched_param* s) {
  Turn turn(Op::pthread_setschedparam);
  dmt::ThreadScheduling* of = scheduling_of(turn.w, p);
  return of == nullptr ? ESRCH : set(*of, {k, s->sched_priority});
}

int pthread_getschedparam(pthread_t p, int* k, struct sched_param* s) {
  Turn turn(Op::pthread_getschedparam);
  const dmt::ThreadScheduling* of = scheduling_of(turn.w, p);
  if (of == nullptr) return ESRCH;
  *k = of->policy;
  s->sched_priority = of->priority;
  return 0;
}

int pthread_setschedprio(pthread_t p, int k) {
  Turn turn(Op::pthread_setschedprio);
  dmt::ThreadScheduling* of = scheduling_of(turn.w, p);
  return of == nullptr ? ESRCH : set(*of, {policy_of(*of), k});
}

int sched_setscheduler(pid_t p, int k, const struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  Turn turn(Op::sched_setscheduler);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, p, true, slot); error != 0) return fail(error);
  return answer(set(turn.w.scheduling[slot], {k, s->sched_priority}));
}

int sched_setparam(pid_t p, const struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  Turn turn(Op::sched_setparam);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, p, true, slot); error != 0) return fail(error);
  dmt::ThreadScheduling& of = turn.w.scheduling[slot];
  return answer(set(of, {policy_of(of), s->sched_priority}));
}

int sched_getscheduler(pid_t p) {
  Turn turn(Op::sched_getscheduler);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, p, false, slot); error != 0) return fail(error);
  return policy_of(turn.w.scheduling[slot]);
}

int sched_getparam(pid_t p, struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  Turn turn(Op::sched_getparam);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, p, false, slot); error != 0) return fail(error);
  s->sched_priority = turn.w.scheduling[slot].priority;
  return 0;
}

int sched_rr_get_interval(pid_t p, struct timespec* t) {
  Turn turn(Op::sched_rr_get_interval);
  std::uint16_t slot = 0;
  if (const int error = find(turn.w, p, false, slot); error != 0) return fail(error);
  const int policy = turn.w.scheduling[slot].policy;
  t->tv_sec = 0;
  t->tv_nsec = policy == SCHED_RR ? kRoundRobinNs : policy == SCHED_FIFO ? 0 : kFairNs;
  return 0;
}

int pthread_setaffinity_np(pthread_t p, size_t n, const cpu_set_t* s) {
  Turn turn(Op::pthread_setaffinity_np);
  dmt::ThreadScheduling* of = scheduling_of(turn.w, p);
  return of == nullptr ? ESRCH : set_affinity(*of, n, s);
}

int pthread_getaffinity_np(pthread_t p, size_t n, cpu_set_t* s) {
  Turn turn(Op::pthread_getaffinity_np);
  const dmt::ThreadScheduling* of = scheduling_of(turn.w, p);
  return of == nullptr ? ESRCH : get_affinity(*of, n, s);
}

int sched_setaffinity(pid_t p, size_t n, const cpu_set_t* s) {
  Turn turn(Op::sched_setaffinity);
  std::uint16_t slot = 0;
  if (const int error = find_for_affinity(turn.w, p, true, slot); error != 0) return fail(error);
  return answer(set_affinity(turn.w.scheduling[slot], n, s));
}

int sched_getaffinity(pid_t p, size_t n, cpu_set_t* s) {
  Turn turn(Op::sched_getaffinity);
  std::uint16_t slot = 0;
  if (const int error = find_for_affinity(turn.w, p, false, slot); error != 0) return fail(error);
  return answer(get_affinity(turn.w.scheduling[slot], n, s));
}

// Returns the lowest processor that the thread may run on.
int sched_getcpu() {
  Turn turn(Op::sched_getaffinity);
  const int processor = __builtin_ctzll(affinity_of(turn.w.scheduling[self.slot]));
  turn.result(processor);
  return processor;
}

}  // namespace wrap
}  // namespace crane
