// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/server_parts.h"

#include <filesystem>
#include <utility>

namespace crane::node {

void note_place(NodeState& state, const consensus::EntryView& entry, std::vector<std::byte> facts) {
  state.at = entry.at;
  state.position = entry.end_pos;
  state.stamp_ns = entry.stamp_ns;
  state.facts = std::move(facts);
}

void note_parts(NodeState& state, const ServerParts& parts, std::uint64_t clock,
                std::uint64_t hash) {
  state.clock = clock;
  state.hash = hash;
  state.first_start = parts.intake.first_start();
  state.verified = parts.live_check.alarms().unbroken();
  state.restarted_from = parts.live_check.alarms().restarted_from();
  state.entries = parts.intake.counts();
  state.outputs = parts.outputs.state();
  state.server = parts.monitor.started_as();
  const dmt::EarlyPoints& early = parts.layout.early_points;
  state.early.assign(early.points, early.points + early.used);
}

std::uint64_t server_log_bytes(const Config& config) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(config.replica_dir() + "/server.log", failed);
  return failed ? 0 : size;
}

}  // namespace crane::node
