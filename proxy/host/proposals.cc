// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/proposals.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "dmt/base/clock.h"
#include "dmt/tuning.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/tuning.h"

namespace crane::node {
namespace {

// Turns per grant where threads wait in loops.
constexpr GrantTurns kSpinningGrant = 16;

proxy::GrantOptions grant_options(const Config& config) noexcept {
  proxy::GrantOptions o;
  o.classic = config.admission == dmt::Admission::kClassic;
  o.input = dmt::kInputGrantDefault;
  o.bubble_min = dmt::kBubbleGrantMin;
  o.bubble_max = dmt::kBubbleGrantMax;
  o.classic_bubble = dmt::kClassicBubbleGrant;
  o.classic_wait_ns = static_cast<std::int64_t>(dmt::kClassicWaitNs);
  // Threads that look for work in loops never let the server become quiescent: inputs are admitted
  // at the ends of grants only, so these are short (rule 4).
  if (config.spins) o.input = o.bubble_min = o.bubble_max = kSpinningGrant;
  if (config.n_clock != 0) o.input = o.bubble_min = o.classic_bubble = config.n_clock;
  o.bubble_max = std::max(o.bubble_max, o.bubble_min);
  if (config.w_timeout_us != 0) o.classic_wait_ns = config.w_timeout_us * 1000LL;
  o.granularity_ns = proxy::kTimerGranularityNs;
  return o;
}

}  // namespace

Proposals::Proposals(const Config& config, const Agreed& agreed, dmt::Layout& layout,
                     Leadership& leadership, proxy::Proxy& proxy, Members members)
    : config_(config),
      agreed_(agreed),
      layout_(layout),
      leadership_(leadership),
      proxy_(proxy),
      grants_(layout, grant_options(config)),
      pacing_(ReplicaId{config.replica}, lag_of(config), std::move(members)) {}

bool Proposals::start(std::int64_t now_ns) {
  StartBody body{};
  std::copy(config_.secret.begin(), config_.secret.end(), std::begin(body.seed));
  dmt::SchedulerState& s = layout_.scheduler;
  if (s.applied_index.load(std::memory_order_acquire) != 0) {  // behind the group's first START
    leadership_.aim(realtime_ns() - s.wall_offset_ns, now_ns);
  }
  body.wall_offset_ns = realtime_ns() - leadership_.now(now_ns);
  body.leader = config_.replica;
  body.resets = proxy_.resets();
  s.leading.store(1, std::memory_order_seq_cst);
  std::array<std::byte, sizeof body + sizeof agreed_> payload;
  std::memcpy(payload.data(), &body, sizeof body);
  std::memcpy(payload.data() + sizeof body, agreed_.data(), sizeof agreed_);
  if (!leadership_.propose_start(dmt::kStartGrant, payload, now_ns).ok()) return false;
  pacing_.lead();  // PROPOSE-1
  grants_.lead();
  return true;
}

void Proposals::propose_inputs() {
  if (proxy_.batch().empty()) return;
  if (proxy_.propose_inputs(grants_.input_grant()).ok()) grants_.input_proposed();
}

void Proposals::propose_grants(Index applied, std::int64_t now_ns) {
  if (pacing_.waits()) return grants_.pause();  // FLOW-1: looked at again soon, like all that waits
  grants_.step(
      {applied, leadership_.proposed(), leadership_.now(now_ns)},
      [this, now_ns](EntryType type, GrantTurns grant) { (void)propose(type, grant, {}, now_ns); });
}

std::int64_t Proposals::due_ns() const noexcept {
  if (!leadership_.leads() || grants_.due_ns() == proxy::kNever) return proxy::kNever;
  return leadership_.mono_at(grants_.due_ns());
}

void Proposals::pace(Index applied, std::uint64_t waiting_bytes, bool full, std::int64_t now_ns) {
  ClientPacing::Seen seen;
  seen.leads = leadership_.leads();
  seen.busy = leadership_.busy();
  seen.full = full;
  seen.paused = proxy_.paused();
  seen.applied = applied;
  seen.proposed = leadership_.proposed();
  seen.waiting_bytes = waiting_bytes;
  const bool pause = pacing_.step(seen, now_ns);
  if (pause != proxy_.paused()) proxy_.pause(pause);
}

}  // namespace crane::node
