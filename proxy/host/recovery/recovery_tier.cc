// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/recovery_tier.h"

#include <spdlog/spdlog.h>

#include <cstring>

#include "checkpoint/criu.h"
#include "checkpoint/image.h"

namespace crane::node {
std::string RecoveryTier::why_no_checkpoints(const Config& config) {
  if (!config.container) return "the server runs without a container";
  const auto criu = checkpoint::find_criu();
  return criu.ok() ? "" : criu.error().message();
}

void RecoveryTier::dump_ended(bool dumped, const std::string& refusal) {
  if (!dumped && refusal.empty()) return;
  // The leader asks for checkpoints, and has none taken of its own server.
  const bool follows = !leadership_.leads() && value(leadership_.leader()) < config_.replicas;
  if (follows && leadership_.view() != View{0}) {
    replica::RefusalMessage note;
    refusal.copy(note.why, sizeof note.why - 1);
    actions_.refuses(leadership_.leader(), note);  // lost: the next one will tell
  }
  set(refusal);
}

// One of the server's files says nothing of CRIU.
void RecoveryTier::taken(const replica::CheckpointNote& note, bool able) {
  if (able && note.by_criu != 0) set("");  // TIER-1
}

void RecoveryTier::heard(const replica::RefusalMessage& note) {
  if (leadership_.leads()) set({note.why, strnlen(note.why, sizeof note.why)});  // TIER-1
}

void RecoveryTier::set(const std::string& refusal) {
  if (refusal == refusal_) return;
  refusal_ = refusal;
  if (refusal.empty()) {
    spdlog::info("recovery: CRIU dumps this server now");
  } else {
    spdlog::warn("recovery: this server cannot be dumped: {}", refusal);
  }
  actions_.changed(refusal_);  // crane-run knows who waits for a checkpoint
}

RecoveryStatus RecoveryTier::status(bool whole_log, const char* came_back_by) {
  RecoveryStatus r;
  r.refused = refusal_;
  r.came_back_by = came_back_by;
  if (!config_.container) {
    r.why = "the server runs without a container";
    return r;
  }
  if (config_.replicas == 1 && !config_.on_disk()) {
    r.why = "a single replica in memory is all there is";
    return r;
  }
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  const checkpoint::Listed* newest = newest_.look(config_.dir, digest);
  if (!refusal_.empty()) {
    r.why = refusal_;
  } else if (newest == nullptr) {
    r.why = "no checkpoint was taken yet";
  }
  if (newest != nullptr) {
    r.tier = checkpoint::name_of(newest->manifest.tier);
    r.entry = value(newest->manifest.at.index);
    if (newest->manifest.tier == checkpoint::Tier::kCriu) r.why.clear();
  } else if (whole_log) {
    r.tier = "replay";
  } else {
    r.why += "; the log does not reach back to its beginning any more";
  }
  return r;
}

}  // namespace crane::node
