// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides whether the group serves its clients, and how many replicas it may lose: one function of
// the replicas' reports about themselves.  crane-ctl status, /health, /leader, the metrics and the
// page show its result and compute nothing themselves.
//
// crane-ctl makes the snapshot from the nodes' answers.  A node makes it from its own state and
// from the other nodes' reports (proxy/replica/status/peer_notes.h).
//
// Threads: pure functions over plain values.
// INVARIANT VERDICT-1  `serving` is true only if the leader itself has reported that it takes
//                      clients, and no cause is known that keeps its server from answering one.
// INVARIANT VERDICT-2  may_lose counts on a replica only if it has reported that it could lead and
//                      serve at once.  Unknown replicas count as missing and are named.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/progress.h"

namespace crane::control {

// If the oldest waiting entry of a server is at most this old, the server can serve as soon as its
// replica leads.
inline constexpr std::int64_t kNearMs = 200;
// If the leader's server is further behind than this and another's is near, the group does not
// serve.  The limit is larger than kNearMs, so that in a long computation, which all replicas run
// alike, the others have reported their lag, too.
inline constexpr std::int64_t kStalledMs = 300;

// A replica's report about itself.
struct Readiness {
  bool runs = false;              // its server runs
  bool starts = false;            // the server has not begun, or has never listened on a port
  bool takes_clients = false;     // it leads, and its server knows that
  bool recovers = false;          // it runs the entries that it missed
  bool needs_checkpoint = false;  // it lacks entries that left the log
  bool acceptor_only = false;     // it votes; no server can begin with its log and checkpoints
  bool paced = false;             // it leads, and its clients wait for followers or a checkpoint
  bool no_room = false;           // a disk or memory is full: its log cannot grow, inputs wait
  bool held = false;              // its server has reached the leader's last known place: not late
  std::int64_t lag_ms = 0;        // age of the oldest entry that its server has not taken
  Progress progress;              // while it recovers, or waits for a checkpoint
  std::string why_not;            // why its server serves no client; empty: it does

  bool late() const noexcept { return lag_ms > kNearMs && !held; }
};
// Why a replica with this report could not lead and serve at once; empty: it could.
std::string why_not_ready(const Readiness& readiness);

struct ReplicaView {
  enum class Member : std::uint8_t { kVoter, kReturning, kOther };
  enum class Contact : std::uint8_t {
    kReported,     // it has sent its report
    kNotReported,  // it is present, but has not sent a report yet
    kStarts,       // its node was started, but does not answer yet
    kSilent,       // it is present, but does not answer
    kDenied,       // the caller has no permission to query it
    kDrained,
    kNotYet,  // it has not been present since the others began
    kGone,
    kCutOff,  // the caller cannot reach it, and no other replica has reported about it
  };
  int replica = 0;
  Member member = Member::kVoter;
  Contact seen = Contact::kGone;
  bool connected = true;     // according to the leader
  bool receives_log = true;  // according to the leader
  Readiness readiness;       // its report, if kReported
};

struct GroupView {
  std::vector<ReplicaView> replicas;
  bool knows_members = true;   // false: the number of tolerable losses is unknown
  int leader = -1;             // -1: none is known
  std::string no_quorum;       // why clients are not served; from the leader or the newest view
  std::string alarm;           // which replica differed where
  std::string no_checkpoints;  // why a replica takes none; empty: all do
  bool unsupervised = false;   // no crane-run restarts lost replicas
};

enum class Health : std::uint8_t { kWell, kDegraded, kDrained, kStarting, kNotServing, kNoLeader };
const char* name(Health health) noexcept;

struct Verdict {
  Health health = Health::kNoLeader;
  bool serving = false;                  // a client that connects now is answered
  bool sound = false;                    // and the replicas do not differ
  std::optional<std::int64_t> may_lose;  // nullopt: not known
  std::string text;                      // one line
  // Problems of single replicas, and why none takes checkpoints.
  std::vector<std::string> notes;
};

Verdict verdict_of(const GroupView& group);

// --- as JSON: the tables are kReadiness and kVerdict of answers.cc
nlohmann::json to_json(const Verdict& verdict);
nlohmann::json to_json(const Readiness& readiness);
// nullopt: there is no such object.
std::optional<Readiness> readiness_in(const nlohmann::json& json);
// null: the replica does not recover, and has a server.
nlohmann::json progress_json(const Readiness& readiness);

}  // namespace crane::control
