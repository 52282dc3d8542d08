// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a leader hands the lead over because its server lags behind a follower's: it is stopped,
// starved of its processor, or has still to run what was missed (consensus/DESIGN.md, C6).
//
// Lag is relative.  A long computation is one on all replicas, and no reason to hand over; it is
// one that a follower's server has run what the leader's has not.  Followers do not report that by
// themselves while they are near, so a leader asks them once its server has not run an entry for
// kAskAfterNs.  A follower whose server may not run ahead of its leader's (dmt/stall.h) answers
// that it waits there, which is as good.
//
// A replica that handed the lead over and leads again waits twice as long the next time, so that
// replicas that are equally short of processor time do not pass the lead around; but where its
// server runs nothing at all, no longer than twice as long as the first time.
//
// A server that is merely slower is left to finish, since a hand-over cuts connections where a
// replica has a host of its own: where the follower needed long for the entry itself, the leader's
// is given as long again; one that waits for its disk, whose next slow write may be any replica's,
// kSlowPatienceNs in all.
//
// Threads: the node's one thread.  Pure: no clock, no I/O.
// INVARIANT LAG-1  The lead is handed over only to a voter whose server, as it answered, had run
//                  what the own server has not run for the patience since then.
// INVARIANT LAG-2  A voter that lacks entries which left the log is not chosen: it could not lead,
//                  and would keep the lead from one that can.

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
  // After so long without handing over, the next time is the first again.
  static constexpr std::int64_t kForgiveNs = 60'000'000'000;

  struct Inputs {
    bool leads = false;          // and may hand over
    Index applied{};             // by the own server
    std::int64_t behind_ns = 0;  // age of the oldest entry that it has not run
    std::uint64_t clock = 0;     // its logical clock
    bool has_server = true;      // else any other server is further
  };
  // Another voter could be handed the lead: it is there, and the leader writes to its log.
  static bool may_take_lead(const consensus::MemberStatus& member, ReplicaId self) noexcept {
    return member.id != self && member.role == consensus::MemberRole::kVoter && member.connected &&
           member.streaming;
  }
  struct Next {
    bool asks = false;                   // all voters
    std::optional<ReplicaId> successor;  // the lead goes there
    std::int64_t due_ns = kNever;
  };

  // `voters`: may_take_lead(); not needed before an entry is kAskAfterNs old.
  Next step(const Inputs& seen, std::span<const ReplicaId> voters, std::int64_t now_ns) noexcept;
  void heard(ReplicaId from, const StandingMessage& answer, std::int64_t now_ns) noexcept;
  // Whether the hand-over that step() chose is put off, as the own server waits for its disk.
  bool waits_for_disk(std::int64_t now_ns) noexcept {
    if (seen_.behind_ns >= kSlowPatienceNs) return false;
    disk_until_ns_ = now_ns + kAskNs;
    return true;
  }
  // The group hands the lead over, as step() said.
  void handed_over(std::int64_t now_ns) noexcept;

 private:
  // What a follower had run that the own server had not, when it first answered so.
  struct Ahead {
    Index applied{};
    std::uint64_t clock = 0;  // that it waits at; 0: it does not
    std::int64_t since_ns = 0;
    std::int64_t took_ns = 0;  // at most, for what it had run
  };
  bool is_ahead(const Ahead& a, const Inputs& seen) const noexcept;
  std::int64_t patience_ns(const Ahead& a, std::int64_t now_ns) const noexcept {
    const std::int64_t stood_ns = std::min(now_ns - moved_ns_, seen_.behind_ns);
    const bool stopped = stood_ns >= kPatienceNs << kStoppedPowerMax;
    const std::int64_t first_ns = std::clamp(a.took_ns, kPatienceNs, kSlowPatienceNs);
    return first_ns << (stopped ? std::min(power_, kStoppedPowerMax) : power_);
  }

  Mutant mutant_;
  std::array<std::optional<Ahead>, kReplicasMax> ahead_{};
  Inputs seen_;                // as of the last step
  std::int64_t moved_ns_ = 0;  // when the own server had last run an entry
  std::int64_t ask_ns_ = 0;
  std::int64_t disk_until_ns_ = 0;   // no hand-over before: the server was seen to wait for it
  std::int64_t handed_over_ns_ = 0;  // 0: never
  unsigned power_ = 0;
};

}  // namespace crane::replica
