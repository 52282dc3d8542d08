// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's requests for checkpoints: of an operator, by the schedule, and for replicas that
// lack entries which have left the log.
//
//   kIdle --an ask: ProposeCheckpoint--> one reason is open --proposed()--> kIdle
//
// Threads: the node's one thread.
// INVARIANT ASK-1  The leader's own server is paused for a checkpoint only when no other replica
//                  that votes is there and has a server that gets the log.
// INVARIANT ASK-2  Replicas take turns, so that a majority has a checkpoint that its log can be cut
//                  below; but not one whose server is far behind, which would take it only when
//                  it has caught up, while another's is not.

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
    bool wanted = false;     // by the configuration, without an operator's word
    std::string wanted_not;  // why no checkpoints are taken on this machine; empty: they are
    Mutant test_only_mutant = Mutant::kNone;
  };
  explicit CheckpointRequests(Rules rules)
      : rules_(std::move(rules)), schedule_(rules_.limits, rules_.test_only_mutant) {}

  // An operator asks; Answer follows.
  void ask(std::optional<ReplicaId> of, const Facts& facts, ActionList& out) {
    ask({Reason::kOperator}, of, facts, out);
  }
  // crane-run asks, on behalf of a replica that waits for one: unless its operator wants none.
  void ask_if_wanted(const Facts& facts, ActionList& out);
  // What became of the last ask.
  void proposed(const Proposed& result, const Facts& facts, ActionList& out);
  // While it serves.  `full`: inputs wait for a checkpoint.
  void step(bool full, const Facts& facts, ActionList& out);
  // On every replica, as any of them may lead next: what became of a checkpoint.
  void heard(const CheckpointNote& note, std::int64_t now_ns);
  // .. and how long the own server has run in all when the log ended there.
  void ran(std::uint64_t log_end, std::int64_t run_ns) noexcept { schedule_.ran(log_end, run_ns); }
  // Half of the ring is used behind the newest checkpoint.
  bool is_urgent(std::uint64_t log_end) const noexcept { return schedule_.is_urgent(log_end); }
  // A replica on another host that cannot begin without one came for it.
  void help(ReplicaId who, Index behind, const Facts& facts, ActionList& out);

  // No other replica that votes is there and has a server that gets the log.
  bool alone(const Facts& facts) const;
  const std::string& wanted_not() const noexcept { return rules_.wanted_not; }

 private:
  struct Reason {
    enum Kind : std::uint8_t { kNone, kOperator, kCraneRun, kSchedule, kLacks, kWaits, kCame };
    Kind kind = kNone;
    ReplicaId of{};  // kLacks, kWaits, kCame: that replica
    Index behind{};  // kCame
  };
  void ask(Reason reason, std::optional<ReplicaId> of, const Facts& facts, ActionList& out);
  void refuse(const char* kind, const std::string& text, const Facts& facts, ActionList& out);
  std::vector<ReplicaId> able(const Facts& facts) const;
  std::vector<ReplicaId> soonest(const Facts& facts) const;
  void give_up_lost(const Facts& facts);
  void help_lagging(const Facts& facts, ActionList& out);
  bool helps(const MemberView& member, std::int64_t now_ns) const;
  bool mutant(Mutant m) const noexcept { return rules_.test_only_mutant == m; }

  const Rules rules_;
  CheckpointSchedule schedule_;
  CheckpointSchedule::Inputs seen_;  // by the last step()
  Reason open_;                      // of the ask that was not proposed yet,
  ReplicaId taker_{};                // and who is to take it
  ReplicaId last_asked_{};           // who took the last one,
  Index request_index_{};            // at that entry
  std::int64_t look_at_ns_ = 0;      // when to look again for a replica that lacks entries
  std::int64_t helped_ns_ = 0;       // when one was last asked for, for a replica that came for it
  Index newest_{};                   // that was heard of
  std::int64_t waited_for_ns_ = 0;   // when one was last asked for, for a replica without a server
};

}  // namespace crane::replica
