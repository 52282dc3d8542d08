// SPDX-License-Identifier: Apache-2.0
// Scheduling policies and priorities: kept per thread, and read back as they were set.  The order
// of turns is the schedule's, so none of them moves anything, and the kernel never hears of them:
// a real-time thread would keep the others of the replica from their processor.
#include <sched.h>
#include <sys/resource.h>

#include "dmt/processes.h"
#include "runtime/preload/core/raw.h"
#include "runtime/preload/core/turn.h"
#include "runtime/preload/core/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/thread.h"

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
  const int policy = wanted.policy;
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

// An error number.
int set(ThreadEntry* thread, const Scheduling& wanted) noexcept {
  if (thread == nullptr) return ESRCH;
  const int error = check_scheduling(wanted);
  if (error == 0) thread->scheduling = wanted;
  return error;
}

// Whom sched_*(p) mean: a thread of this process, else, with `thread` null, another process.  An
// error number.
int find(const dmt::Layout& w, pid_t p, ThreadEntry*& thread) noexcept {
  if (p < 0) return EINVAL;
  thread = p == 0 ? self.entry : find_thread_by_id(static_cast<std::uint32_t>(p));
  if (thread != nullptr) return 0;
  const bool exists = dmt::find_process(w, static_cast<std::uint32_t>(p)) != dmt::kNoProcess;
  return exists ? 0 : ESRCH;
}

// Another process' is not kept: it is checked as Linux does.
int set_of_process(Op op, pid_t p, const Scheduling* policy, int priority) noexcept {
  Turn turn(op);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  Scheduling wanted = policy != nullptr ? *policy : Scheduling{};
  if (policy == nullptr && thread != nullptr) wanted = {thread->scheduling.policy, priority};
  if (thread == nullptr && !may_signal(static_cast<std::uint32_t>(p), 0)) return fail(EPERM);
  const int error = thread != nullptr ? set(thread, wanted) : check_scheduling(wanted);
  return error == 0 ? 0 : fail(error);
}

}  // namespace

namespace wrap {

int pthread_setschedparam(pthread_t p, int k, const struct sched_param* s) {
  Turn turn(Op::pthread_setschedparam);
  return set(find_thread(p), {k, s->sched_priority});
}

int pthread_getschedparam(pthread_t p, int* k, struct sched_param* s) {
  Turn turn(Op::pthread_getschedparam);
  const ThreadEntry* const thread = find_thread(p);
  if (thread == nullptr) return ESRCH;
  *k = thread->scheduling.policy;
  s->sched_priority = thread->scheduling.priority;
  return 0;
}

int pthread_setschedprio(pthread_t p, int k) {
  Turn turn(Op::pthread_setschedprio);
  ThreadEntry* const thread = find_thread(p);
  return thread == nullptr ? ESRCH : set(thread, {thread->scheduling.policy, k});
}

int sched_setscheduler(pid_t p, int k, const struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  const Scheduling wanted{k & ~SCHED_RESET_ON_FORK, s->sched_priority};
  return set_of_process(Op::sched_setscheduler, p, &wanted, 0);
}

int sched_setparam(pid_t p, const struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  return set_of_process(Op::sched_setparam, p, nullptr, s->sched_priority);
}

int sched_getscheduler(pid_t p) {
  Turn turn(Op::sched_getscheduler);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  return thread == nullptr ? SCHED_OTHER : thread->scheduling.policy;
}

int sched_getparam(pid_t p, struct sched_param* s) {
  if (s == nullptr) return fail(EINVAL);
  Turn turn(Op::sched_getparam);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  s->sched_priority = thread == nullptr ? 0 : thread->scheduling.priority;
  return 0;
}

int sched_rr_get_interval(pid_t p, struct timespec* t) {
  Turn turn(Op::sched_rr_get_interval);
  ThreadEntry* thread = nullptr;
  if (const int error = find(turn.w, p, thread); error != 0) return fail(error);
  const int policy = thread == nullptr ? SCHED_OTHER : thread->scheduling.policy;
  t->tv_sec = 0;
  t->tv_nsec = policy == SCHED_RR ? kRoundRobinNs : policy == SCHED_FIFO ? 0 : kFairNs;
  return 0;
}

}  // namespace wrap
}  // namespace crane
