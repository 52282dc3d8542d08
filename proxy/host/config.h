// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's configuration.  crane-run passes it as one JSON object in a file; a node that runs
// without crane-run reads the group's file (host_config.h).  Unknown fields of the JSON are ignored
// (an older node can run under a newer launcher); missing fields have the defaults below.
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

// The fields that crane-run sets (runtime/setup/node_fields.def), and those that the node derives.
struct Config : setup::NodeFields {
  // Without these fields a node takes no checkpoints.
  Config() { checkpoint_every_s = checkpoint_log_mb = 0; }

  std::uint64_t base_digest = 0;  // of the content of `base`; 0: all replicas share one base
  std::vector<int> cpus;          // of the whole replica, including `cpu`; empty: any
  std::uint64_t processors = 0;   // bit mask of `cpus`; 0: more than 64 processors (place_node)
  int numa_node = -1;             // its memory is preferred; -1: any
  rlim_t server_descriptors = 0;  // the server's soft limit; 0: the node's limit
  // For a replay (proxy/replay/replay.h): the name of its container in place of the replica's, the
  // checkpoint to begin with, and the digest of the recorded group's log.
  bool replays = false;
  std::string container_name, restore_from, log_digest;
  std::string program_file;  // path of `program` in the held state of the machine's files
  // Set when the node runs without crane-run, one per host.
  std::optional<setup::GroupFile> host;
  std::array<std::byte, 32> links{};  // authenticates replicas to each other

  std::uint32_t detached_calls() const;  // bits of dmt::DetachedCall
  std::string replica_dir() const { return dir + "/r" + std::to_string(replica); }
  // The directory of the log, outside replica_shm_dir() because the server sees that one.
  std::string consensus_dir() const {
    const bool shared = !host || host->fabric == "shm";
    return shm_dir + (shared ? "/consensus" : "/consensus-" + std::to_string(replica));
  }
  bool on_disk() const { return durability == "disk"; }
  std::string left_dir() const { return replica_dir() + "/left"; }  // for keeps_files
  // The record of the machine's files that the group reads (checkpoint/machine_files.h); "": live.
  std::string files_record() const {
    return container && !replays ? dir + "/" + setup::kFilesRecord : "";
  }
  std::string checkpoints_dir() const { return replica_dir() + "/checkpoints"; }
  std::string store_dir() const { return dir + "/store"; }
  std::string replica_shm_dir() const { return shm_dir + "/r" + std::to_string(replica); }
};

// The limit of flow control (proxy/replica/role/flow_control.h) in nanoseconds; 0: no limit.  There
// is none with the stall rule's --spins: flow control stalled the leader for moments, and then
// followers' loops more often ended before they were found (dmt/stall.h has the consequence).
std::int64_t lag_of(const Config& config) noexcept;

// kBadArgument: `what` of the error names the field.
Result<Config> parse_config(std::string_view json);
// kNotFound when there is no such file.
Result<Config> read_config(const std::string& path);

}  // namespace crane::node
