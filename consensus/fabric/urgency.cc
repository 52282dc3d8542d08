// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/urgency.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "consensus/fabric/process.h"
#include "dmt/base/clock.h"
#include "dmt/base/futex.h"

namespace crane::consensus {
namespace {

constexpr int kLoopPriority = 1;
constexpr int kWatchPriority = 2;  // it must preempt a loop that has used its share
constexpr std::uint32_t kIdleLooks = 4;
constexpr std::int64_t kParkedNs = 1'000'000'000;

std::uint64_t clock_ns(clockid_t id) noexcept {
  return static_cast<std::uint64_t>(crane::clock_ns(id));
}

// Children forked meanwhile have the ordinary policy.
bool set_policy(pid_t thread, int policy, int priority) noexcept {
  sched_param parameter{};
  parameter.sched_priority = priority;
  return ::sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK, &parameter) == 0;
}

}  // namespace

Urgency::Urgency() noexcept
    : loop_(::gettid()), ordinary_(std::max(::sched_getscheduler(0), 0) & ~SCHED_RESET_ON_FORK) {
  ::pthread_getcpuclockid(::pthread_self(), &clock_);
}

void Urgency::watch() noexcept {
  turned_ns_.store(clock_ns(CLOCK_MONOTONIC));
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // without the thread the priority never changes
  }
}

void Urgency::stop() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    if (raised_) lower();
  }
  if (!thread_.joinable()) return;
  wake();
  thread_.join();
}

void Urgency::begin() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!stopped_) raise(clock_ns(CLOCK_MONOTONIC) + kDeathNs);
  }
  wake();  // the thread that lowers the priority again
}

void Urgency::wake() noexcept {
  parked_.store(0);
  futex_wake(&parked_, 1);
}

void Urgency::raise(std::uint64_t until_ns) noexcept {
  until_ns_ = std::max(until_ns_, until_ns);
  if (!set_policy(loop_, SCHED_RR, kLoopPriority)) return;
  raised_ = true;
  raised_used_ = seen_used_ = used_ns();
  idle_looks_ = 0;
}

void Urgency::lower() noexcept {
  raised_ = false;
  set_policy(loop_, ordinary_, 0);
}

std::uint64_t Urgency::used_ns() const noexcept { return clock_ns(clock_); }

void Urgency::run() noexcept {
  if (!set_policy(0, SCHED_RR, kWatchPriority)) return;
  std::optional<std::uint64_t> pause_ns = kLateNs;
  for (;;) {
    const timespec pause{0, static_cast<long>(pause_ns.value_or(kLookNs))};
    ::nanosleep(&pause, nullptr);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopped_) return;
      pause_ns = look(clock_ns(CLOCK_MONOTONIC));
      if (!pause_ns) parked_.store(1);
    }
    if (!pause_ns) futex_wait_for(&parked_, 1, kParkedNs);
  }
}

std::optional<std::uint64_t> Urgency::look(std::uint64_t now_ns) noexcept {
  if (!raised_) {
    const std::uint64_t until_late =
        until_late_ns(now_ns, turned_ns_.load(std::memory_order_relaxed));
    if (until_late > 0) return until_late;  // URGENCY-1
    raise(0);
    return kLookNs;
  }
  if (now_ns < until_ns_) return kLookNs;
  const std::uint64_t used = used_ns();
  if (used - raised_used_ >= kLentNs) {
    lower();
    return kLookNs;
  }
  idle_looks_ = used == seen_used_ ? idle_looks_ + 1 : 0;
  seen_used_ = used;
  return idle_looks_ >= kIdleLooks ? std::nullopt : std::optional(kLookNs);
}

void Urgency::always() noexcept { set_policy(0, SCHED_RR, kLoopPriority); }

}  // namespace crane::consensus
