// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node is told: by crane-run in one JSON object in a file, or, when it runs by itself, by
// the group's file (host_config.h).  Unknown fields of the JSON are ignored, so that an older node
// can run under a newer launcher; missing ones have the defaults below.
//
// Threads: plain value.

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dmt/base/result.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/node_fields.h"
#include "runtime/setup/preflight.h"

namespace crane::node {

// What crane-run tells a node (runtime/setup/node_fields.def), and what the node finds out.
struct Config : setup::NodeFields {
  // A node that is told nothing of them takes no checkpoints.
  Config() { checkpoint_every_s = checkpoint_log_mb = 0; }

  std::uint64_t base_digest = 0;  // of the content of `base`; 0: all replicas have the very same
  std::vector<int> cpus;          // of all of the replica, which `cpu` is one of; empty: any
  std::uint64_t processors = 0;   // as bits, what `cpus` come to; 0: more than 64 (place_node)
  int numa_node = -1;             // its memory is preferred; -1: any
  rlim_t server_descriptors = 0;  // the server's soft limit of them; 0: as the node's
  // Of a replay (proxy/replay/replay.h): the name of its container instead of the replica's, the
  // checkpoint to begin with, and the digest of the recorded group's log.
  bool replays = false;
  std::string container_name, restore_from, log_digest;
  std::string program_file;  // where `program` lies in the state of the machine's files
  // Set when the node runs by itself, one per host.
  std::optional<setup::GroupFile> host;
  std::array<std::byte, 32> links{};  // authenticates replicas to each other

  std::uint32_t detached_calls() const;  // bits of dmt::DetachedCall
  std::string replica_dir() const { return dir + "/r" + std::to_string(replica); }
  // Of the log.  Not in replica_shm_dir(), which the server sees.
  std::string consensus_dir() const {
    const bool shared = !host || host->fabric == "shm";
    return shm_dir + (shared ? "/consensus" : "/consensus-" + std::to_string(replica));
  }
  bool on_disk() const { return durability == "disk"; }
  std::string left_dir() const { return replica_dir() + "/left"; }  // of keeps_files
  // Of the machine's files that the group reads (checkpoint/machine_files.h); "": as they are.
  std::string files_record() const {
    return container && !replays ? dir + "/" + setup::kFilesRecord : "";
  }
  std::string checkpoints_dir() const { return replica_dir() + "/checkpoints"; }
  std::string store_dir() const { return dir + "/store"; }
  std::string replica_shm_dir() const { return shm_dir + "/r" + std::to_string(replica); }
};

// The limit of flow control (proxy/replica/role/flow_control.h) in nanoseconds; 0: none.  None
// under the stall rule's --spins: loops of followers whose leader is stalled for a moment were more
// often not found before they ended by themselves (dmt/stall.h says what then).
std::int64_t lag_of(const Config& config) noexcept;

// kBadArgument: `what` of the error names the field.
Result<Config> parse_config(std::string_view json);
// kNotFound when there is no such file.
Result<Config> read_config(const std::string& path);

}  // namespace crane::node
