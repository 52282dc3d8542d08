// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node says about itself: status.json and the answer to {"t":"status"}.
//
// Threads: plain value.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/latency_histogram.h"
#include "dmt/base/result.h"
#include "proxy/clients/outbound.h"
#include "proxy/host/recovery/node_state.h"
#include "proxy/host/recovery/recovery_status.h"
#include "proxy/host/soft_barriers.h"
#include "proxy/host/stall_watch.h"
#include "proxy/host/unhooked.h"
#include "proxy/replica/check/slices.h"
#include "proxy/replica/recovery/checkpointer.h"
#include "proxy/replica/recovery/upgrade.h"
#include "proxy/replica/role/flow_control.h"
#include "proxy/replica/status/self_report.h"
#include "runtime/control/verdict.h"

namespace crane::node {

struct NodeStatus {
  std::string group, fabric, durability;
  replica::Upgrade upgrade;  // the last one
  replica::Upgrade::Server server;
  std::string library;    // digest of the server's libcrane.so; empty: there is none yet
  std::string cpus;       // of the replica, where it is bound to some
  std::string placement;  // of the node: "roams", "shares"; "": it has no choice
  int numa_node = -1;     // whose memory it prefers
  std::uint8_t replicas = 0;
  std::uint8_t connected = 0;   // peers
  std::uint64_t forwarded = 0;  // clients passed on to the leader's host
  consensus::GroupStatus log;   // members, last election, detection
  std::uint64_t now_ns = 0;     // CLOCK_MONOTONIC
  std::uint8_t replica = 0;
  std::int64_t pid = 0;
  std::int64_t server_pid = -1;
  std::string role;
  std::uint64_t view = 0;
  std::uint8_t leader = 0;
  std::uint64_t last = 0, committed = 0, applied = 0;  // applied: admitted by the server
  std::uint64_t reigns = 0;                            // of which this replica knew the leader
  std::int64_t lag_ns = 0;  // age of the oldest entry that a follower's server has not taken
  // A leader's word of the others; one that is not in it is near.
  std::map<std::uint8_t, replica::FollowerLag> follower_lags;
  LatencyHistogram commit_times;    // of what it proposed
  std::uint64_t spooled_bytes = 0;  // committed, and not in the server's memory yet
  std::uint64_t wakeups = 0;        // of the node
  replica::FollowerLag lag_of(ReplicaId follower) const;
  // The server's ports and those of this host, when the node runs by itself.
  std::vector<std::pair<std::uint16_t, std::uint16_t>> ports;
  int server_exit = -1;             // its status once the log says that it ended
  std::string server_end = {};      // then: how, as ServerExit::reason()
  std::string server_refused = {};  // then: what libcrane.so refused it last, or ""
  std::uint64_t clock = 0;          // turns taken
  std::uint64_t schedule_hash = 0;  // at `clock`, when settled
  bool settled = false;             // no thread had the turn while clock and hash were read
  bool spins = false;               // the stall rule is in force
  std::uint64_t preempted = 0;      // how often a thread gave way here
  replica::Standing standing;
  std::uint64_t slices = 0;  // that ended here
  std::uint32_t tick_points = 0;
  replica::Unsliced unsliced;
  // Live checking: the last cut at which this replica and a majority were equal, and what the last
  // judgement was: "equal", "different", "unknown".
  std::uint64_t verified = 0;
  std::uint64_t verified_ns = 0;  // CLOCK_MONOTONIC; 0: never
  std::string verdict = "unknown";
  std::string alarm;              // who differed where; empty: none
  std::string no_quorum;          // why clients are not served; empty: they are
  std::string not_serving;        // why the server serves no client; empty: it does
  std::uint64_t divergences = 0;  // found here
  std::uint64_t verified_ago_ms() const noexcept {
    return (now_ns - (verified_ns < now_ns ? verified_ns : now_ns)) / 1'000'000;
  }
  std::uint64_t outputs_bytes = 0;
  std::uint64_t outputs_digest = 0;
  EntryCounts entries{};  // committed
  replica::CheckpointStatus checkpoint;
  DumpTimes dump;
  ReturnTimes returned;
  RecoveryStatus recovery;
  std::string no_checkpoints;     // why none are taken here; empty: they are
  std::uint64_t restored_at = 0;  // the entry whose checkpoint this node began with; 0: none
  std::uint64_t connections = 0, accepted = 0, refused = 0, reset_slow = 0, reset_leader = 0;
  control::Readiness readiness;  // this replica's
  std::map<std::uint8_t, replica::PeerView> peers;
  bool gets_log = true;            // as far as the leader has told
  bool unsupervised = false;       // no crane-run starts lost replicas
  bool keeps_connections = false;  // they outlive the leader
  std::uint64_t adopted = 0, last_adopted = 0, last_reset = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::int64_t waited_ns = 0;  // while it led: clients waited for followers' servers
  std::vector<SoftBarrierStatus> soft_barriers;
  std::uint64_t unhooked_calls = 0;  // system calls that bypassed libcrane.so
  std::vector<Unhooked> unhooked;    // the first few different ones
  bool watched = true;               // false: the kernel cannot see such calls
  UnsupportedCounts unsupported;
  std::map<std::string, proxy::Destinations::Counts> outbound;  // whom the server connects to
};

nlohmann::json to_json(const NodeStatus& status);
// The group as this replica knows it.
control::GroupView seen_by(const NodeStatus& status);
control::Verdict verdict_of(const NodeStatus& status);
// Committed entries that clients and signals caused.
std::uint64_t inputs_of(const NodeStatus& status);
// Replaces `path` atomically.
Outcome write_file(const std::string& path, const std::string& text);

}  // namespace crane::node
