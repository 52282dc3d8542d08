// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/proposals.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <spdlog/spdlog.h>

#include "dmt/base/clock.h"
#include "dmt/tuning.h"
#include "proxy/clients/encode.h"
#include "proxy/replica/role/tuning.h"

namespace crane::node {
namespace {

// Turns per grant if threads wait in loops.
constexpr GrantTurns kSpinningGrant = 16;

replica::GrantOptions grant_options(const Config& config) noexcept {
  replica::GrantOptions o;
  o.classic = config.admission == dmt::Admission::kClassic;
  o.input = dmt::kInputGrantDefault;
  o.bubble_min = dmt::kBubbleGrantMin;
  o.bubble_max = dmt::kBubbleGrantMax;
  o.classic_bubble = dmt::kClassicBubbleGrant;
  o.classic_wait_ns = static_cast<std::int64_t>(dmt::kClassicWaitNs);
  // Threads that look for work in loops never let the server become quiescent.  Then inputs are
  // admitted only at the ends of grants, so grants are short (rule 4).
  if (config.spins) o.input = o.bubble_min = o.bubble_max = kSpinningGrant;
  if (config.n_clock != 0) o.input = o.bubble_min = o.classic_bubble = config.n_clock;
  o.bubble_max = std::max(o.bubble_max, o.bubble_min);
  if (config.w_timeout_us != 0) o.classic_wait_ns = config.w_timeout_us * 1000LL;
  o.granularity_ns = replica::kTimerGranularityNs;
  return o;
}

replica::TurnsNeeded turns_wanted(const dmt::Layout& layout) noexcept {
  const dmt::SchedulerState& s = layout.scheduler;
  const bool stalled = s.stalled.load(std::memory_order_relaxed) != 0;
  const bool at_soft_barrier = s.at_soft_barrier.load(std::memory_order_relaxed) != 0;
  const bool idle = s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  replica::TurnsNeeded wanted;
  wanted.stalled = stalled && idle;
  wanted.low = s.grant_low.load(std::memory_order_relaxed) != 0;
  wanted.slice = s.slice_wanted.load(std::memory_order_relaxed) != 0;
  wanted.at_soft_barrier = at_soft_barrier && idle;
  wanted.next_deadline_ns = s.next_deadline.load(std::memory_order_relaxed);
  return wanted;
}

}  // namespace

Proposals::Proposals(Owner& owner, const Config& config, const Agreed& agreed, dmt::Layout& layout,
                     replica::Leadership& leadership, proxy::Proxy& proxy)
    : owner_(owner),
      config_(config),
      agreed_(agreed),
      layout_(layout),
      leadership_(leadership),
      proxy_(proxy),
      grants_(grant_options(config)),
      pacing_(lag_of(config)) {}

Result<Index> Proposals::propose(EntryType type, GrantTurns grant, std::span<const std::byte> body,
                                 std::int64_t now_ns) {
  const auto proposal = leadership_.begin_proposal(type, now_ns);
  if (!proposal.ok()) return proposal.error();
  Result<Index> index = owner_.append(proposal.value(), grant, body);
  leadership_.proposed(proposal.value(), index, now_ns);
  return index;
}

bool Proposals::start(std::int64_t now_ns) {
  StartBody body{};
  std::copy(config_.secret.begin(), config_.secret.end(), std::begin(body.seed));
  dmt::SchedulerState& s = layout_.scheduler;
  if (s.applied_index.load(std::memory_order_acquire) != 0) {  // after the group's first START
    leadership_.aim(realtime_ns() - s.wall_offset_ns, now_ns);
  }
  body.wall_offset_ns = realtime_ns() - leadership_.now(now_ns);
  body.leader = config_.replica;
  body.resets = proxy_.resets();
  s.leading.store(1, std::memory_order_seq_cst);
  std::array<std::byte, sizeof body + sizeof agreed_> payload;
  std::memcpy(payload.data(), &body, sizeof body);
  std::memcpy(payload.data() + sizeof body, agreed_.data(), sizeof agreed_);
  if (!propose(EntryType::kStart, dmt::kStartGrant, payload, now_ns).ok()) return false;
  pacing_.lead();  // PROPOSE-1
  grants_.lead();
  return true;
}

void Proposals::propose_inputs(std::int64_t now_ns) {
  if (proxy_.batch().empty()) return;
  const auto propose_one = [this, now_ns](EntryType type, GrantTurns grant,
                                          std::span<const std::byte> body) {
    return propose(type, grant, body, now_ns);
  };
  if (proxy_.propose_inputs(grants_.input_grant(), propose_one).ok()) grants_.input_proposed();
}

void Proposals::propose_grants(Index applied, std::int64_t now_ns) {
  if (pacing_.waits()) return grants_.pause();  // FLOW-1: checked again soon
  const replica::Decision decision = grants_.step(
      {applied, leadership_.proposed(), leadership_.now(now_ns)}, turns_wanted(layout_));
  if (decision.what != replica::Propose::kNothing) {
    const bool time = decision.what == replica::Propose::kTime;
    (void)propose(time ? EntryType::kTime : EntryType::kBubble, decision.grant, {}, now_ns);
  }
  layout_.scheduler.node_timer.store(grants_.timer_ns(), std::memory_order_relaxed);
}

bool Proposals::has_news(Index applied) const noexcept {
  return grants_.has_news(applied, leadership_.proposed(), turns_wanted(layout_)) || may_read_all();
}

std::int64_t Proposals::due_ns() const noexcept {
  if (!leadership_.leads() || grants_.due_ns() == replica::kNever) return replica::kNever;
  return leadership_.mono_at(grants_.due_ns());
}

void Proposals::pace(Index applied, std::uint64_t waiting_bytes, bool full, std::int64_t now_ns) {
  replica::ClientPacing::Inputs seen;
  seen.leads = leadership_.leads();
  seen.busy = leadership_.busy();
  seen.full = full;
  seen.paused = proxy_.paused();
  seen.applied = applied;
  seen.proposed = leadership_.proposed();
  seen.waiting_bytes = waiting_bytes;
  if (seen.leads && pacing_.has_late_follower(now_ns)) {
    others_.clear();
    for (const consensus::MemberStatus& m : owner_.members()) {
      if (m.role != consensus::MemberRole::kVoter) continue;
      ++seen.voters;
      if (m.connected && value(m.id) != config_.replica) others_.push_back(m.id);
    }
    seen.others = others_;
  }
  const replica::ClientPacing::Next next = pacing_.step(seen, now_ns);
  if (next.pause != proxy_.paused()) proxy_.pause(next.pause);
  if (!next.report) return;
  spdlog::info(
      "clients wait for followers whose servers are more than {} ms behind this one; they have "
      "waited {} ms in total",
      lag_of(config_) / 1'000'000, pacing_.waited_ns() / 1'000'000);
}

}  // namespace crane::node
