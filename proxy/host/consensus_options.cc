// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/consensus_options.h"

#include <fmt/format.h>

#include "proxy/clients/tuning.h"
#include "proxy/host/recovery/tier_status.h"

namespace crane::node {
namespace {

void set_host_options(const Config& config, consensus::Options& options) {
  const setup::GroupFile& f = *config.host;
  options.fabric = f.fabric == "tcp"     ? consensus::FabricKind::kTcp
                   : f.fabric == "verbs" ? consensus::FabricKind::kVerbs
                                         : consensus::FabricKind::kShm;
  for (const setup::HostReplica& r : f.replicas) options.endpoints.push_back({r.address, r.port});
  if (f.links_listen_any) {
    std::string& own = options.endpoints[config.replica].address;
    own = own.find(':') == std::string::npos ? "0.0.0.0" : "::";
  }
  options.secret = config.links;
  options.device = f.device;
  for (const auto fence : {consensus::Fence::kAccessFlags, consensus::Fence::kQueuePairReset}) {
    if (f.fence == consensus::name(fence)) options.fence = fence;
  }
  options.fence_flags_devices = f.fence_flags_devices;
  for (const auto pages : {consensus::HugePages::kRequire, consensus::HugePages::kNever}) {
    if (f.huge_pages == consensus::name(pages)) options.huge_pages = pages;
  }
  options.members = f.members;
  options.ring_bytes = std::uint64_t{f.ring_mb} << 20;
  if (!f.virtual_ip.empty()) options.removed_leader_ns = proxy::kInputDrainNs;
}

}  // namespace

consensus::Options member_options(const Config& config) {
  consensus::Options options;
  options.directory = config.consensus_dir();
  options.self = ReplicaId{config.replica};
  options.replicas = config.replicas;
  options.log_id = config.log_id;
  options.members = config.members;
  if (config.ring_bytes != 0) options.ring_bytes = config.ring_bytes;
  return options;
}

bool keeps_whole_log(const Config& config) {
  const bool wanted = config.checkpoint_every_s != 0 || config.checkpoint_log_mb != 0;
  return !config.host && !config.on_disk() && config.replicas > 1 && wanted &&
         why_no_checkpoints(config).empty();
}

consensus::Options consensus_options(const Config& config) {
  consensus::Options options = member_options(config);
  options.keeps_log = keeps_whole_log(config);
  options.forget = config.forget;
  if (config.host) set_host_options(config, options);
  if (config.host || config.on_disk()) options.lasting_directory = config.dir;
  if (config.on_disk()) {
    options.durability = consensus::Durability::kDisk;
    options.store_directory = config.store_dir();
  }
  options.urgent = true;
  return options;
}

Error log_failure(const Error& e, const Config& config, bool restored) {
  if (e.code == Code::kUnsupported && config.host) {
    return failure(
        ExitStatus::kNotHere,
        fmt::format("[group] requires something that this host lacks: {}; see the line before",
                    e.what));
  }
  if (e.code == Code::kGone && !config.on_disk()) {
    return failure(ExitStatus::kNoCheckpoint,
                   fmt::format("the part of the log that this replica holds begins after {}{}",
                               restored ? "the newest checkpoint that can be used"
                                        : "its first entry, and there is no checkpoint to begin at",
                               config.skip_checkpoints ? "; the next start tries them again" : ""));
  }
  if (e.code == Code::kGone) {
    return failure(
        ExitStatus::kNoCheckpoint,
        fmt::format("the log of this replica begins after {} (see the line before): {}; copy "
                    "the newest directory of another replica's checkpoints into {} and start "
                    "this one again",
                    restored ? "the newest checkpoint that can be used"
                             : "its first entry, and there is no checkpoint",
                    config.store_dir(), config.checkpoints_dir()));
  }
  return failure(e.code == Code::kFull ? ExitStatus::kNoRoom : ExitStatus::kNoConsensus,
                 fmt::format("consensus in {}: {}", config.shm_dir, e.message()));
}

}  // namespace crane::node
