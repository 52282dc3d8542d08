// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/leadership.h"

#include <spdlog/spdlog.h>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// From here on the log tells how far virtual time is behind.
constexpr std::int64_t kToldNs = 1'000'000'000;

}  // namespace

void Leadership::role(consensus::Role role, View view, ReplicaId leader) {
  if (leads_ && (role != consensus::Role::kLeader || view != view_)) {
    leads_ = false;  // LEAD-3
    deposed_ = true;
    busy_ = false;
    clock_.follow();
  }
  if (value(leader) < kReplicasMax && view != led_view_) {
    led_view_ = view;
    ++reigns_;
    times_.forget();
  }
  role_ = role;
  view_ = view;
  leader_ = leader;
  if (role == consensus::Role::kLeader && !leads_) {
    leads_ = true;
    last_ = Index{};
    clock_.lead();
  }
  changed_ = true;
}

Result<Index> Leadership::propose(EntryType type, GrantTurns grant, std::span<const std::byte> body,
                                  std::int64_t now_ns) {
  if (!leads_) return Error{Code::kNotLeader, 0, "not the leader"};  // LEAD-3
  Result<Index> index = append_(type, clock_.next_stamp(now_ns), grant, body);
  busy_ = !index.ok() && index.error().code == Code::kBusy;
  if (index.ok()) {
    CRANE_ASSERT(type == EntryType::kStart || value(start_) != 0);  // LEAD-1
    times_.proposed(index.value(), now_ns);
    clock_.proposed(now_ns);
    last_ = index.value();
    // Those of the stall rule grant nothing: their admission is not waited for.
    if (type != EntryType::kPreempt && type != EntryType::kPassed) proposed_ = index.value();
  }
  return index;
}

Outcome Leadership::propose_start(GrantTurns grant, std::span<const std::byte> body,
                                  std::int64_t now_ns) {
  CRANE_ASSERT(!started());  // LEAD-1
  const View view = view_;
  const Result<Index> index = propose(EntryType::kStart, grant, body, now_ns);
  if (!index.ok()) return index.error();
  started_view_ = view;
  start_ = index.value();
  return Done{};
}

void Leadership::resume_time(std::int64_t now_ns) {
  clock_.resume(now_ns);
  const std::int64_t behind_ns = clock_.behind_ns(now_ns);
  if (behind_ns < kToldNs) return;
  spdlog::info("virtual time is {} ms behind after an outage, and catches up",
               behind_ns / 1'000'000);
}

}  // namespace crane::node
