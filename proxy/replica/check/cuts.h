// SPDX-License-Identifier: Apache-2.0
#pragma once
// The decisions of live checking (proxy/record/verification.h): when the leader proposes a HASH
// entry and what it contains, the judgement that all replicas make of it alike, and what a replica
// does that differs from the others.
//
//   leader:         Tick -> LookAtMembers, Propose
//   every replica:  Committed, Admitted -> TakeDigest;  Taken -> SendDigest
//   leader:         Heard; the next Propose carries the digests back to all
//
// The contract with the shell (proxy/host/live_check.h) is that of consensus/core/step.h: actions
// are carried out in order and completely before those of a later step, and every event is legal in
// every state.  Members answers LookAtMembers, Proposed answers Propose, Taken answers TakeDigest,
// Raised answers Raise.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT CHECK-1  A digest is taken when its cut is admitted, which is the same moment of the
//                    schedule on every replica; entries that the server has not admitted yet wait.
// INVARIANT CHECK-2  The leader counts only digests of its own view and of the last cut that it
//                    proposed.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/record/alarms.h"
#include "proxy/record/verification.h"
#include "proxy/replica/deadline.h"

namespace crane::replica {

namespace cuts {

// --- events

// The replica begins at the checkpoint of entry `at`; the rest is the state of its alarms.
struct Restored {
  Index at{};
  std::uint64_t verified = 0;
  std::uint64_t restarted_from = 0;
};
// A HASH entry of the log, in log order.
struct Committed {
  Viewstamp at;
  proxy::HashBody body;
};
// This replica's server admitted the entry; its earlier output was hashed.
struct Admitted {
  proxy::SchedulePoint here{};
  bool accepts_digests = false;  // the replica has not reached its end
  std::size_t voters = 0;
};
// This node's knowledge about its role; part of the events that need it.
struct Reign {
  bool leads = false;
  View view{};
};
struct Taken {
  proxy::Digest digest{};
  Reign reign;
};
// A replica's digest.
struct PeerDigest {
  ReplicaId from{};
  proxy::Digest digest{};
  Reign reign;
};
// This replica begins to lead.
struct BecameLeader {};
struct Tick {
  bool serves = false;                     // it leads, accepts clients, and continues
  bool busy = false;                       // nothing can be proposed now
  std::span<const std::uint64_t> entries;  // committed entries, by EntryType; valid during the step
  std::uint64_t output_bytes = 0;
};
struct Members {
  std::span<const consensus::MemberStatus> members;  // valid during the step
};
struct Proposed {
  bool ok = false;
  bool cut = false;
  Index index{};
};
struct Raised {
  std::string alarm;
  Index at{};
  bool accused = false;
  std::string when;  // wall clock time as text
};

using Event = std::variant<Tick, Restored, Committed, Admitted, Taken, PeerDigest, BecameLeader,
                           Members, Proposed, Raised>;

// --- actions

struct LookAtMembers {};
// Proposes a HASH entry; if `with_evidence`, with the evidence of the last cut.
struct Propose {
  proxy::HashBody body;
  bool with_evidence = false;
};
// Takes the digest and the evidence for it.
struct TakeDigest {
  View view{};
  proxy::SchedulePoint here{};
};
// Sent out of band: it may be lost, and then counts as unknown.
struct SendDigest {
  ReplicaId to{};
  proxy::Digest digest{};
};
// This replica's digest at a cut, and the digests of all replicas there according to the log.
struct Compared {
  proxy::Digest own{};
  proxy::Digests logged;
};
// All replicas were equal at the cut of the evidence.
struct Verified {};
// Earlier states are no longer compared.
struct StartAgain {
  proxy::SchedulePoint here{};
};
// Replicas differ: the text of the alarm, and the evidence to compare with the leader's.
struct Raise {
  std::string what;
  Index at{};
  ReplicaId leader{};
  std::optional<proxy::Evidence> theirs;  // nullopt: there is none to compare this replica's with
  bool must_log = false;                  // the alarm must be logged
  bool keeps_evidence = false;
  bool accused = false;
};
// This replica is in the minority and must not continue.
struct Diverged {
  std::string alarm;
  Index at{};
};

using Action = std::variant<LookAtMembers, Propose, TakeDigest, SendDigest, Compared, Verified,
                            StartAgain, Raise, Diverged>;
using ActionList = std::vector<Action>;

struct Options {
  ReplicaId self{};
  std::uint8_t replicas = 1;
  bool evaluates = true;  // true: a member of the group; false: a replay, which only compares
};

}  // namespace cuts

class Cuts {
 public:
  explicit Cuts(const cuts::Options& options) noexcept : options_(options) {}

  void step(const cuts::Event& event, std::int64_t now_ns);
  // Returns the actions since the last call by swapping buffers; false when there are none.
  bool take_actions(cuts::ActionList& out);
  // When the next Tick is due; kNever: after the next event.
  std::int64_t deadline_ns() const noexcept { return due_ns_; }
  // Whether the Admitted event of this entry changes anything (CHECK-1).
  bool awaits(std::uint64_t index) const noexcept {
    return !hashes_.empty() && value(hashes_.front().at.index) == index;
  }

  const proxy::Alarms& alarms() const noexcept { return alarms_; }
  proxy::Verdict verdict() const noexcept { return verdict_; }
  // CLOCK_MONOTONIC at the last cut where this replica and a majority were equal; 0: never.
  std::int64_t verified_ns() const noexcept { return verified_ns_; }

 private:
  void on(const cuts::Restored& restored);
  void on(const cuts::Committed& entry) { hashes_.push_back(entry); }
  void on(const cuts::Admitted& entry);
  void on(const cuts::Taken& taken);
  void on(const cuts::PeerDigest& peer);
  void on(const cuts::BecameLeader&);
  void on(const cuts::Tick& tick);
  void on(const cuts::Members& group);
  void on(const cuts::Proposed& proposed);
  void on(const cuts::Raised& raised);

  proxy::VerifyPolicy::Work work_done(const cuts::Tick& tick) const noexcept;
  bool all_digests_there(std::span<const consensus::MemberStatus> members) const;
  void propose(std::span<const consensus::MemberStatus> members);
  void evaluate(proxy::HashBody& body, ReplicaId proposer, std::size_t voters);
  void replace_own_digest(proxy::Digests& digests) const;

  const cuts::Options options_;
  cuts::ActionList actions_;
  std::int64_t now_ns_ = 0;
  std::int64_t due_ns_ = kNever;
  Index began_at_{};                    // the checkpoint's entry; 0: none
  std::deque<cuts::Committed> hashes_;  // not yet admitted by this replica's server
  proxy::VerifyPolicy policy_;
  proxy::VerifyPolicy::Work done_{};         // as of the last Tick
  bool looks_ = false;                       // a LookAtMembers is unanswered
  std::uint64_t cut_ = 0;                    // the last cut that this replica proposed
  proxy::Digests digests_;                   // leader: the digests of that cut; empty: it was none
  std::optional<proxy::Digest> own_digest_;  // of this replica, at the last cut
  std::uint64_t evidence_cut_ = 0;           // the cut where the evidence ends
  std::int64_t verified_ns_ = 0;
  proxy::Verdict verdict_ = proxy::Verdict::kUnknown;
  proxy::Alarms alarms_;
};

// Returns the number of voters, at least 1.
std::size_t voters_of(std::span<const consensus::MemberStatus> members);

}  // namespace crane::replica
