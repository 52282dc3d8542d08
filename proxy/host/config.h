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
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/soft_barrier.h"

namespace crane::node {

// The options that crane-run, group.toml and the node share (runtime/setup/option_table.def), and
// what the node alone is told.
struct Config : setup::NodeOptions {
  // A node that is told nothing of them takes no checkpoints.
  Config() { checkpoint_every_s = checkpoint_log_mb = 0; }

  std::string group = "crane";
  std::uint8_t replica = 0;
  std::uint8_t replicas = 1;
  std::string dir;      // group directory; this replica's files are in <dir>/r<i>
  std::string shm_dir;  // on tmpfs; this replica's segment is <shm_dir>/r<i>/segment
  std::string program;
  std::vector<std::string> args;
  std::vector<std::string> env;   // "NAME=value"
  std::vector<std::string> dirs;  // made for the server before it starts
  dmt::Mode mode = dmt::Mode::kSerial;
  std::uint32_t detached_calls = 0;               // bits of dmt::DetachedCall
  std::vector<setup::SoftBarrier> soft_barriers;  // at most dmt::kSoftBarrierPointsMax
  std::vector<setup::Bind> binds;
  std::string http_listen;              // where it answers HTTP, ADDRESS:PORT; empty: nowhere
  std::vector<std::string> http_pages;  // by replica, where a browser reaches what it answers
  std::string base;  // what a new server's lasting directories begin as; empty: none last
  std::uint64_t base_digest = 0;  // of its content; 0: all replicas have the very same one
  bool keeps_files = false;       // what the server leaves is for the group's next start
  bool leaves_files = false;      // likewise, or for crane-run to look at
  std::string libcrane;
  std::uint64_t perturb = 0;
  bool test_only_flip = false;    // a bit of this replica's output is wrong
  bool trace = false;             // record every turn
  int cpu = -1;                   // of the server
  std::vector<int> server_cpus;   // of the servers of all replicas of this machine; may be empty
  std::vector<int> cpus;          // of all of the replica, which `cpu` is one of; empty: any
  std::uint64_t processors = 0;   // as bits, what `cpus` come to; 0: more than 64 (place_node)
  int numa_node = -1;             // its memory is preferred; -1: any
  rlim_t server_descriptors = 0;  // the server's soft limit of them; 0: as the node's
  std::uint64_t log_id = 0;
  std::array<std::uint64_t, 4> secret{};  // the seed of virtual randomness (D7)
  std::uint64_t send_buffer = 0;          // 0: the default
  std::string working_directory = "/";
  bool restore = false;           // begin with the newest checkpoint of the group that is whole,
  std::string checkpoint;         // or with this one
  bool may_begin = false;         // if there is none: begin with the log, and run all inputs
  bool forget = false;            // what the log's memory holds is not this replica's any more
  bool skip_checkpoints = false;  // as if there was none
  int analysis_replica = -1;      // the place of the group's analysis replica; -1: it has none
  // Of that one: valgrind's tool, where it keeps what it gets, and how much.
  std::string analysis, analysis_dir;
  std::uint32_t analysis_spool_mb = 0;
  std::uint8_t members = 0;      // the first so many replicas vote from the beginning; 0: all
  std::uint64_t ring_bytes = 0;  // of the log in memory; 0: the default
  // Of a replay (proxy/replay/replay.h): the name of its container instead of the replica's, the
  // checkpoint to begin with, and the digest of the recorded group's log.
  bool replays = false;
  std::string container_name, restore_from, log_digest;
  // Set when the node runs by itself, one per host.
  std::optional<setup::GroupFile> host;
  std::array<std::byte, 32> links{};  // authenticates replicas to each other

  std::string replica_dir() const { return dir + "/r" + std::to_string(replica); }
  // Of the log.  Not in replica_shm_dir(), which the server sees.
  std::string consensus_dir() const {
    const bool shared = !host || host->fabric == "shm";
    return shm_dir + (shared ? "/consensus" : "/consensus-" + std::to_string(replica));
  }
  bool on_disk() const { return durability == "disk"; }
  std::string left_dir() const { return replica_dir() + "/left"; }  // of keeps_files
  std::string checkpoints_dir() const { return replica_dir() + "/checkpoints"; }
  std::string store_dir() const { return dir + "/store"; }
  std::string replica_shm_dir() const { return shm_dir + "/r" + std::to_string(replica); }
};

// The words of the command line and the group's file; false: there is no such word.
bool mode_of(const std::string& name, dmt::Mode& mode);
// The words of `detach`.
std::uint32_t detached_calls_of(const std::vector<std::string>& names);

// The limit of flow control (proxy/replica/role/flow_control.h) in nanoseconds; 0: none.  None
// under the stall rule's --spins: loops of followers whose leader is stalled for a moment were more
// often not found before they ended by themselves (dmt/stall.h says what then).
std::int64_t lag_of(const Config& config) noexcept;

// kBadArgument: `what` of the error names the field.
Result<Config> parse_config(std::string_view json);
// kNotFound when there is no such file.
Result<Config> read_config(const std::string& path);

}  // namespace crane::node
