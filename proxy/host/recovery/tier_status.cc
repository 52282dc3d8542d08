// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/tier_status.h"

#include "checkpoint/criu.h"
#include "checkpoint/image.h"
#include "runtime/setup/option_table.h"

namespace crane::node {

std::string why_no_checkpoints(const Config& config) {
  if (!config.container) return "the server runs without a container";
  const auto criu = checkpoint::find_criu();
  return criu.ok() ? "" : criu.error().message();
}

std::string why_log_never_cut(const Config& config) {
  if (!config.on_disk() || (config.container && config.restart_every_s != 0)) return "";
  if (config.checkpoint_every_s == 0 && config.checkpoint_log_mb == 0) {
    return "checkpoint_every_s and checkpoint_log_mb are 0";
  }
  return why_no_checkpoints(config);
}

RecoveryStatus tier_status(const Config& config, const std::string& refusal,
                           checkpoint::Newest& newest_seen, bool whole_log) {
  RecoveryStatus r;
  r.refused = refusal;
  if (!config.container) {
    r.why = "the server runs without a container";
    return r;
  }
  if (setup::cannot_recover(config.replicas, config)) {
    r.why = "the group has only one replica, in memory";
    return r;
  }
  const std::string digest = checkpoint::digest_of_log(config.group, config.log_id);
  const checkpoint::Listed* newest = newest_seen.look(config.dir, digest);
  if (!refusal.empty()) {
    r.why = refusal;
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
    r.why += "; the log no longer reaches back to its beginning";
  }
  return r;
}

}  // namespace crane::node
