// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/missing_entries.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "proxy/host/recovery/starting_point.h"

namespace crane::node {
namespace {

constexpr std::int64_t kLookNs = 50'000'000;

}  // namespace

bool none_has_server(std::span<const VoterSeen> voters, ReplicaId self) noexcept {
  return std::all_of(voters.begin(), voters.end(), [self](const VoterSeen& v) {
    return v.id == self || !v.connected || v.waits_behind;
  });
}

bool others_suffice(std::span<const VoterSeen> voters, ReplicaId self) noexcept {
  const auto others = std::count_if(voters.begin(), voters.end(), [self](const VoterSeen& v) {
    return v.connected && v.id != self;
  });
  return static_cast<std::size_t>(others) * 2 > voters.size();
}

bool may_restart(std::span<const VoterSeen> voters, ReplicaId self, Index at,
                 std::int64_t known_ns) noexcept {
  if (none_has_server(voters, self)) return true;
  const bool another_first = std::any_of(voters.begin(), voters.end(), [&](const VoterSeen& v) {
    return v.connected && v.id < self && v.waits_behind && *v.waits_behind < at;
  });
  if (another_first && known_ns < kTurnNs) return false;
  return voters.size() <= 2 || others_suffice(voters, self) || known_ns >= kSpareNs;
}

bool MissingEntries::is_due(std::int64_t now_ns) noexcept {
  if (now_ns < look_at_ns_) return false;
  look_at_ns_ = now_ns + kLookNs;
  return true;
}

// Its leader has one more checkpoint taken for it (checkpoint_requests.h).
std::optional<std::string> MissingEntries::step(Index last, Shipping* shipping,
                                                std::int64_t now_ns) {
  if (!std::exchange(said_, true)) {
    spdlog::warn(
        "entries behind {} have left the logs of the others: this replica waits for a newer "
        "checkpoint",
        value(last));
  }
  const auto at = find_behind(last, shipping, now_ns);
  if (!at) return std::nullopt;
  return fmt::format(
      "entries behind {} have left the logs of the others; it restarts at a "
      "checkpoint, which is at entry {}",
      value(last), value(*at));
}

std::optional<std::string> MissingEntries::overtaken(Index applied, Index least, Shipping* shipping,
                                                     std::int64_t now_ns) {
  const auto at = find_behind(Index{value(least) - 1}, shipping, now_ns);
  if (!at) return std::nullopt;
  return fmt::format(
      "its server is at entry {} and far behind; it restarts at a newer checkpoint, which is at "
      "entry {}",
      value(applied), value(*at));
}

// The newest that is here; if none is behind `last`, one is fetched, and this comes again.
std::optional<Index> MissingEntries::find_behind(Index last, Shipping* shipping,
                                                 std::int64_t now_ns,
                                                 std::span<const Index> unusable) {
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  for (const auto& [replica, one] : checkpoints_to_try(config_)) {
    const checkpoint::Manifest& m = one.manifest;
    if (!one.belongs_to(digest) || one.distrusted) continue;
    if (m.at.index <= last) break;  // LACK-1
    if (std::find(unusable.begin(), unusable.end(), m.at.index) != unusable.end()) continue;
    // The process that fetched it has not said so yet, and may not be done.
    if (replica == config_.replica && shipping != nullptr && shipping->fetches()) {
      return std::nullopt;
    }
    return m.at.index;
  }
  if (shipping != nullptr) shipping->fetch(last, now_ns);
  return std::nullopt;
}

}  // namespace crane::node
