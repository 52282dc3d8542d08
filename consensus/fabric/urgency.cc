// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/urgency.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace crane::consensus {
namespace {

constexpr std::uint64_t kUrgentNs = 20'000'000;
constexpr int kPriority = 1;  // the lowest one

std::uint64_t monotonic_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// What is forked meanwhile is ordinary.
bool set_policy(pid_t thread, int policy, int priority) noexcept {
  sched_param parameter{};
  parameter.sched_priority = priority;
  return ::sched_setscheduler(thread, policy | SCHED_RESET_ON_FORK, &parameter) == 0;
}

}  // namespace

Urgency::Urgency() noexcept : loop_(::gettid()) {}

void Urgency::begin() noexcept {
  // In this order: once the time is set the loop takes it back.
  if (set_policy(loop_, SCHED_RR, kPriority)) until_ns_.store(monotonic_ns() + kUrgentNs);
}

void Urgency::end_when_over() noexcept {
  const std::uint64_t until = until_ns_.load(std::memory_order_relaxed);
  if (until == 0 || monotonic_ns() < until) return;
  until_ns_.store(0);
  set_policy(loop_, SCHED_OTHER, 0);
}

void Urgency::always() noexcept { set_policy(0, SCHED_RR, kPriority); }

}  // namespace crane::consensus
