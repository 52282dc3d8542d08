// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the group serves its clients, and how many replicas it may lose: one function of what
// each replica says of itself.  crane-ctl status, /health, /leader, the metrics and the page show
// what it returns, and compute nothing of it.
//
// A snapshot is made by crane-ctl, of the answers of the nodes; or by a node, of its own state and
// of what the others have told it (proxy/replica/status/peer_notes.h).
//
// Threads: pure functions over plain values.
// INVARIANT VERDICT-1  `serving` is said only if the leader itself has said that it takes clients,
//                      and nothing is known that keeps its server from answering one.
// INVARIANT VERDICT-2  may_lose counts on no replica that has not said that it could lead and serve
//                      at once; what is not known counts as missing, and is named.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace crane::control {

// A server whose oldest entry that waits is no older serves at once when its replica leads.
inline constexpr std::int64_t kNearMs = 200;
// A leader whose server is further behind serves nothing if another's is near.  More than kNearMs:
// of a computation, which is one on all replicas alike, the others have told by then.
inline constexpr std::int64_t kStandsMs = 300;

// Of what a replica missed: entries that its server has run since the replica began, and those that
// it has to run.
struct Progress {
  std::uint64_t done = 0, of = 0;
  std::uint64_t per_s = 0;    // entries, in the last seconds
  std::int64_t left_ms = -1;  // -1: not known
};

// What a replica says of itself.
struct Readiness {
  bool runs = false;              // its server does
  bool starts = false;            // the server has not begun, or has never listened on a port
  bool takes_clients = false;     // it leads, and its server knows that
  bool recovers = false;          // it runs what it missed
  bool needs_checkpoint = false;  // it lacks entries that left the log
  bool acceptor_only = false;     // it votes; no server can begin where its log and checkpoints do
  bool paced = false;             // it leads, and its clients wait for followers or a checkpoint
  bool no_room = false;           // a disk or memory is full: its log cannot grow, inputs wait
  bool held = false;              // its server is where the leader's was last known to be: not late
  std::int64_t lag_ms = 0;        // age of the oldest entry that its server has not taken
  Progress progress;              // while it recovers, or waits for a checkpoint
  std::string why_not;            // why its server serves no client; empty: it does

  bool late() const noexcept { return lag_ms > kNearMs && !held; }
};
// Why such a replica could not lead and serve at once; empty: it could.
std::string why_not_ready(const Readiness& told);

struct ReplicaView {
  enum class Member : std::uint8_t { kVoter, kReturning, kOther };
  enum class Contact : std::uint8_t {
    kTold,     // it says what it is
    kNotTold,  // it is there, and has said nothing yet
    kStarts,   // its node was started, and does not answer yet
    kSilent,   // it is there, and does not answer
    kDenied,   // it may not be asked
    kDrained,
    kNotYet,  // it was not there since the others began
    kGone,
  };
  int replica = 0;
  Member member = Member::kVoter;
  Contact seen = Contact::kGone;
  bool connected = true;  // by the leader's word
  bool gets_log = true;   // by the leader's word
  Readiness told;         // kTold
};

struct GroupView {
  std::vector<ReplicaView> replicas;
  bool knows_members = true;  // else nothing is known of how many may be lost
  int leader = -1;            // -1: none is known
  std::string no_quorum;      // why clients are not served, by the leader or the newest view
  std::string alarm;          // which replica differed where
  bool unsupervised = false;  // lost replicas stay away
};

enum class Health : std::uint8_t { kWell, kDegraded, kDrained, kStarting, kNotServing, kNoLeader };
const char* name(Health health) noexcept;

struct Verdict {
  Health health = Health::kNoLeader;
  bool serving = false;                  // a client that connects now is answered
  bool sound = false;                    // and the replicas do not differ
  std::optional<std::int64_t> may_lose;  // nullopt: not known
  std::string text;                      // one line
  std::vector<std::string> notes;        // what is wrong with which replica
};

Verdict verdict_of(const GroupView& group);

// --- as JSON: the tables are kReadiness and kVerdict of answers.cc
nlohmann::json to_json(const Verdict& verdict);
nlohmann::json to_json(const Readiness& told);
// nullopt: it is no such object.
std::optional<Readiness> readiness_in(const nlohmann::json& json);
// null: it does not recover, and has a server.
nlohmann::json progress_json(const Readiness& told);

}  // namespace crane::control
