// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's status: status.json and the answer to {"t":"status"}.
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
  replica::Upgrade upgrade;  // the last upgrade
  replica::Upgrade::Server server;
  std::string library;    // digest of the server's libcrane.so; empty: none yet
  std::string cpus;       // processors of the replica, if it is bound
  std::string placement;  // of the node: "roams", "shares"; "": no choice
  int numa_node = -1;     // its memory is preferred; -1: any
  std::uint8_t replicas = 0;
  std::uint8_t connected = 0;   // number of connected peers
  std::uint64_t forwarded = 0;  // clients forwarded to the leader's host
  consensus::GroupStatus log;   // members, last election, detection
  std::uint64_t now_ns = 0;     // CLOCK_MONOTONIC
  std::uint8_t replica = 0;
  std::int64_t pid = 0;
  std::int64_t server_pid = -1;
  std::string role;
  std::uint64_t view = 0;
  std::uint8_t leader = 0;
  std::uint64_t last = 0, committed = 0, applied = 0;  // applied: admitted by the server
  std::uint64_t reigns = 0;                            // reigns with a known leader
  std::int64_t lag_ns = 0;  // age of the oldest entry not taken by a follower's server
  // Reported by a leader; a follower that is absent is not behind.
  std::map<std::uint8_t, replica::FollowerLag> follower_lags;
  LatencyHistogram commit_times;    // of its own proposals
  std::uint64_t spooled_bytes = 0;  // committed but not yet in the server's memory
  std::uint64_t wakeups = 0;        // wake-ups of the node
  replica::FollowerLag lag_of(ReplicaId follower) const;
  // The server's ports and those of this host, if the node runs without crane-run.
  std::vector<std::pair<std::uint16_t, std::uint16_t>> ports;
  int server_exit = -1;             // its status once the log contains its end
  std::string server_end = {};      // then: the kind of end, as ServerExit::reason()
  std::string server_refused = {};  // then: the last refusal of libcrane.so, or ""
  std::uint64_t clock = 0;          // turns taken
  std::uint64_t schedule_hash = 0;  // at `clock`, when settled
  bool settled = false;             // no thread had the turn while clock and hash were read
  bool spins = false;               // the stall rule is in force
  std::uint64_t preempted = 0;      // preempted threads on this replica
  replica::StalledThread stalled_thread;
  std::uint64_t slices = 0;  // slices ended on this replica
  std::uint32_t tick_points = 0;
  replica::Unsliced unsliced;
  // Live checking: the last cut at which this replica and a majority were equal, and the last
  // verdict: "equal", "different", "unknown".
  std::uint64_t verified = 0;
  std::uint64_t verified_ns = 0;  // CLOCK_MONOTONIC; 0: never
  std::string verdict = "unknown";
  std::string alarm;              // which replicas differed and where; empty: none
  std::string no_quorum;          // why clients are not served; empty: served
  std::string not_serving;        // why the server serves no client; empty: it serves
  bool differ = false;            // `alarm` is not over
  std::uint64_t divergences = 0;  // found by this replica
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
  std::string no_checkpoints;     // why none are taken; empty: they are taken
  std::uint64_t restored_at = 0;  // entry of the checkpoint it began with; 0: none
  std::uint64_t connections = 0, accepted = 0, refused = 0, reset_slow = 0, reset_leader = 0;
  control::Readiness readiness;  // of this replica
  std::map<std::uint8_t, replica::PeerView> peers;
  bool receives_log = true;        // as last reported by the leader
  bool unsupervised = false;       // no crane-run starts lost replicas now
  bool keeps_connections = false;  // connections survive a change of the leader
  std::uint64_t adopted = 0, last_adopted = 0, last_reset = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::int64_t waited_ns = 0;  // while leading: clients' wait for followers' servers
  std::vector<SoftBarrierStatus> soft_barriers;
  std::uint64_t unhooked_calls = 0;  // system calls that bypassed libcrane.so
  std::vector<Unhooked> unhooked;    // the first few distinct calls
  bool watched = true;               // false: the kernel cannot see such calls
  UnsupportedCounts unsupported;
  std::map<std::string, proxy::Destinations::Counts> outbound;  // destinations of the server
};

nlohmann::json to_json(const NodeStatus& status);
// The group as known to this replica.
control::GroupView seen_by(const NodeStatus& status);
control::Verdict verdict_of(const NodeStatus& status);
// Committed entries that clients and signals caused.
std::uint64_t inputs_of(const NodeStatus& status);
// Replaces `path` atomically.
Outcome write_file(const std::string& path, const std::string& text);

}  // namespace crane::node
