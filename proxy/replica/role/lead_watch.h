// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a leader hands leadership over because its server lags behind a follower's: the server is
// stopped, starved of its processor, or has yet to run what it missed (consensus/DESIGN.md, C6).
//
// Lag is relative.  A long computation takes long on all replicas, and is no reason to hand over; a
// reason is that a follower's server has run an entry that the leader's has not.  Followers that
// are near do not report that unasked, so a leader asks them when its server has not run an entry
// for kAskAfterNs.  A follower whose server may not run ahead of the leader's (dmt/stall.h) answers
// that it waits there, which counts as having run it.
//
// A replica that handed leadership over and leads again waits twice as long the next time.  So
// replicas that are equally short of processor time do not pass leadership around.  If its server
// runs nothing at all, the wait is at most twice the first one.
//
// A server that is only slower gets time to finish, because a hand-over cuts connections if each
// replica has its own host.  If the follower needed long for the entry, the leader's server gets as
// long again.  A server that waits for its disk gets kSlowPatienceNs in all, because the next slow
// write may happen on any replica.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT LAG-1  Leadership is handed over only to a voter whose answer showed that its server
//                  had run something which this replica's server has still not run when the
//                  patience since that answer is over.
// INVARIANT LAG-2  A voter that lacks entries which left the log is not chosen: it could not lead,
//                  and would keep leadership from a voter that can.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "proxy/replica/deadline.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/mutant.h"

namespace crane::replica {

class LeadWatch {
 public:
  explicit LeadWatch(Mutant mutant = Mutant::kNone) noexcept : mutant_(mutant) {}

  static constexpr std::int64_t kAskAfterNs = 50'000'000;
  static constexpr std::int64_t kAskNs = 25'000'000;  // between two questions
  static constexpr std::int64_t kPatienceNs = 100'000'000;
  static constexpr std::int64_t kSlowPatienceNs = 1'000'000'000;
  static constexpr unsigned kPatiencePowerMax = 6, kStoppedPowerMax = 1;
  // After this time without a hand-over the patience is that of the first time again.
  static constexpr std::int64_t kForgiveNs = 60'000'000'000;

  struct Inputs {
    bool leads = false;          // it leads, and may hand over
    Index applied{};             // the last entry that its server has run
    std::int64_t behind_ns = 0;  // age of the oldest entry that it has not run
    std::uint64_t clock = 0;     // logical clock of its server
    bool has_server = true;      // false: any other server is further
  };
  // Whether leadership can be handed to that member: it is another voter, it is connected, and the
  // leader sends it the log.  `member`: a consensus::MemberStatus or a MemberView.
  static bool may_take_lead(const auto& member, ReplicaId self) noexcept {
    return member.id != self && member.role == consensus::MemberRole::kVoter && member.connected &&
           member.streaming;
  }
  struct Next {
    bool asks = false;                   // all voters are asked
    std::optional<ReplicaId> successor;  // leadership goes to this replica
    std::int64_t due_ns = kNever;
  };

  // `voters`: those of may_take_lead(); not needed before an entry is kAskAfterNs old.
  Next step(const Inputs& seen, std::span<const ReplicaId> voters, std::int64_t now_ns) noexcept;
  void on_report(ReplicaId from, const ServerPlaceMessage& answer, std::int64_t now_ns) noexcept;
  // True if the hand-over that step() chose is postponed because this replica's server waits for
  // its disk.
  bool waits_for_disk(std::int64_t now_ns) noexcept {
    if (seen_.behind_ns >= kSlowPatienceNs) return false;
    disk_until_ns_ = now_ns + kAskNs;
    return true;
  }
  // The group hands leadership over, as step() decided.
  void handed_over(std::int64_t now_ns) noexcept;

 private:
  // How far a follower's server was ahead of this replica's, in the first answer that showed it.
  struct Ahead {
    Index applied{};
    std::uint64_t clock = 0;  // the clock at which it waits; 0: it does not
    std::int64_t since_ns = 0;
    std::int64_t took_ns = 0;  // how long it took for what it had run, at most
  };
  bool is_ahead(const Ahead& a, const Inputs& seen) const noexcept;
  std::int64_t patience_ns(const Ahead& a, std::int64_t now_ns) const noexcept {
    const std::int64_t stalled_ns = std::min(now_ns - moved_ns_, seen_.behind_ns);
    const bool stopped = stalled_ns >= kPatienceNs << kStoppedPowerMax;
    const std::int64_t first_ns = std::clamp(a.took_ns, kPatienceNs, kSlowPatienceNs);
    return first_ns << (stopped ? std::min(power_, kStoppedPowerMax) : power_);
  }

  Mutant mutant_;
  std::array<std::optional<Ahead>, kReplicasMax> ahead_{};
  Inputs seen_;                // as of the last step
  std::int64_t moved_ns_ = 0;  // when this replica's server last ran an entry
  std::int64_t ask_ns_ = 0;
  std::int64_t disk_until_ns_ = 0;   // no hand-over before: the server was waiting for its disk
  std::int64_t handed_over_ns_ = 0;  // 0: never
  unsigned power_ = 0;
};

}  // namespace crane::replica
