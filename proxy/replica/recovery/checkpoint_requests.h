// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's requests for checkpoints: for an operator, by the schedule, and for replicas that
// lack entries which have left the log.
//
//   kIdle --a request: ProposeCheckpoint--> one reason is open --proposed()--> kIdle
//
// Threads: the node's one thread.
// INVARIANT ASK-1  The leader's own server is paused for a checkpoint only if no other voting
//                  replica is connected and has a server that receives the log.
// INVARIANT ASK-2  Replicas take turns, so that a majority has a checkpoint below which its log can
//                  be cut.  A replica whose server is far behind is skipped while another's is not:
//                  it would take the checkpoint only after it has caught up.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/checkpoint_schedule.h"
#include "proxy/replica/step.h"

namespace crane::replica {

class CheckpointRequests {
 public:
  struct Rules {
    ReplicaId self{};
    CheckpointSchedule::Limits limits;
    bool wanted = false;  // the configuration wants checkpoints, without a request of an operator
    std::string why_not_wanted;  // why no checkpoints are taken on this machine; empty: they are
    Mutant test_only_mutant = Mutant::kNone;
  };
  explicit CheckpointRequests(Rules rules)
      : rules_(std::move(rules)), schedule_(rules_.limits, rules_.test_only_mutant) {}

  // Requests one for an operator; Answer follows.
  void ask(std::optional<ReplicaId> of, const Facts& facts, ActionList& out) {
    ask({Reason::kOperator}, of, facts, out);
  }
  // crane-run suggests one, on behalf of a replica that returns: it is requested as soon as this
  // leader serves and a follower can take it; not if the operator wants none.
  void suggest(const Facts& facts) noexcept { suggested_ = facts.leads && rules_.wanted; }
  // Requests one from replica `peer`, for an operator of its host.  Until it can, and if it has
  // done so, it does nothing: the peer repeats its wish until an entry answers it (WISH-1).
  void wish(ReplicaId peer, Index behind, const Facts& facts, ActionList& out);
  // The result of the last request.
  void proposed(const Proposed& result, const Facts& facts, ActionList& out);
  // Called while this replica serves.  `full`: inputs wait for a checkpoint.
  void step(bool full, const Facts& facts, ActionList& out);
  // Called on every replica, because any may lead next: the outcome of a checkpoint.
  void on_report(const CheckpointNote& note, std::int64_t now_ns);
  // The total run time of this replica's server when the log ended at that place.
  void ran(std::uint64_t log_end, std::int64_t run_ns) noexcept { schedule_.ran(log_end, run_ns); }
  // Half of the ring is used after the newest checkpoint.
  bool is_urgent(std::uint64_t log_end) const noexcept { return schedule_.is_urgent(log_end); }
  // Replica `peer` on another host cannot begin without a checkpoint, and requested one.
  void help(ReplicaId peer, Index behind, const Facts& facts, ActionList& out);

  // No other voting replica is connected and has a server that receives the log.
  bool alone(const Facts& facts) const;
  const std::string& why_not_wanted() const noexcept { return rules_.why_not_wanted; }

 private:
  struct Reason {
    enum Kind : std::uint8_t {
      kNone,
      kOperator,
      kCraneRun,
      kSchedule,
      kLacks,
      kWaits,
      kReturned,
      kWish
    };
    Kind kind = kNone;
    ReplicaId of{};  // kLacks, kWaits, kReturned, kWish: that replica
    Index behind{};  // kReturned, kWish
  };
  void ask(Reason reason, std::optional<ReplicaId> of, const Facts& facts, ActionList& out);
  void refuse(const char* kind, const std::string& text, const Facts& facts, ActionList& out);
  static void log_wish(const Reason& reason, const std::string& result, ActionList& out);
  std::vector<ReplicaId> able(const Facts& facts) const;
  std::vector<ReplicaId> soonest(const Facts& facts) const;
  bool take_suggestion(const Facts& facts);
  void give_up_lost(const Facts& facts);
  void help_lagging(const Facts& facts, ActionList& out);
  bool helps(const MemberView& member, std::int64_t now_ns) const;
  bool mutant(Mutant m) const noexcept { return rules_.test_only_mutant == m; }

  const Rules rules_;
  CheckpointSchedule schedule_;
  CheckpointSchedule::Inputs seen_;  // of the last step()
  Reason open_;                      // the reason for the request that is not proposed yet
  ReplicaId taker_{};                // the replica that is to take it
  ReplicaId last_asked_{};           // the replica that took the last one
  Index request_index_{};            // the entry of that request
  View request_view_{};              // and its view
  bool suggested_ = false;           // crane-run waits for a request
  std::int64_t look_at_ns_ = 0;      // when to look again for a replica that lacks entries
  std::int64_t helped_ns_ = 0;       // the last request for a replica on another host
  Index newest_{};                   // the newest checkpoint that was reported
  std::int64_t waited_for_ns_ = 0;   // the last request for a replica without a server
};

}  // namespace crane::replica
