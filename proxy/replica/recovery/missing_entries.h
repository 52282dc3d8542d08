// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica that cannot go on where it is, and at which checkpoint it goes on instead: a follower
// that lacks entries which have left the others' logs; one that runs behind for so long that a
// newer checkpoint overtakes it (overtaking.h); one without a server, which votes (VOTES-1).
//
//   FindCheckpoints --Found--> Restart, or FetchCheckpoint from another host and once more later
//
// Threads: the node's one thread.
// INVARIANT LACK-1  A replica gives up its server only when a checkpoint is there whose entry is
//                   behind all that it has; one that is overtaken, behind all that its server has
//                   run.
// INVARIANT LACK-2  A checkpoint that could not be unpacked when the replica began is no reason to
//                   restart for kUnusableNs.
// INVARIANT VOTES-1  A replica whose log does not reach back to where a server can begin votes and
//                    holds the log, without a server, until a checkpoint is there.  While another
//                    replica serves, it restarts only at one behind all that its log held, and as
//                    may_restart() says.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "proxy/replica/mutant.h"
#include "proxy/replica/recovery/overtaking.h"
#include "proxy/replica/step.h"

namespace crane::replica {

// Whether no voter but perhaps one that is away has a server; `self` has none.
bool none_has_server(std::span<const MemberView> members, ReplicaId self) noexcept;

// The other voters that are there and, as they have said, get the log are a majority.
bool others_suffice(std::span<const MemberView> members, ReplicaId self) noexcept;

// Whether the replica may restart at a checkpoint at `at`, which it has known for so long
// (VOTES-1). While another one's server serves, the replica with the lowest id goes first, unless
// that does not go for kTurnNs; and others_suffice(), unless no other voter
// comes for kSpareNs, or there are only two: clients wait for a moment then.
inline constexpr std::int64_t kTurnNs = 10'000'000'000, kSpareNs = 30'000'000'000;
bool may_restart(std::span<const MemberView> members, ReplicaId self, Index at,
                 std::int64_t known_ns) noexcept;

class MissingEntries {
 public:
  explicit MissingEntries(ReplicaId self, Mutant mutant = Mutant::kNone)
      : self_(self), mutant_(mutant) {}

  // The replica begins; its log holds all up to `held`, and its server begins behind `begins`, or
  // was to.
  void begin(Index held, Index begins, std::int64_t now_ns) noexcept;
  // Its server runs, and has not caught up; bringing it back took so long.
  void server_runs(Index applied, std::int64_t took_ns, std::int64_t now_ns) noexcept {
    overtaking_.begin(applied, took_ns, now_ns);
  }
  // A replica has published a checkpoint.
  void heard(Index at, std::int64_t now_ns) noexcept {
    overtaking_.heard(at);
    look_first_ns_ = now_ns;
  }

  // It follows.  `caught_up`: with all that it missed.
  void step(bool caught_up, const Facts& facts, ActionList& out);
  // It only votes.
  void step_first(const Facts& facts, ActionList& out);
  void found(const Found& found, const Facts& facts, ActionList& out);
  // When step_first() wants to be called.
  std::int64_t first_due_ns() const noexcept { return look_first_ns_; }

 private:
  std::optional<Index> choose(const Found& found, Index last, std::int64_t now_ns,
                              ActionList& out) const;
  void found_first(const Found& found, const Facts& facts, ActionList& out);

  const ReplicaId self_;
  const Mutant mutant_;
  Overtaking overtaking_;
  bool reported_ = false;
  std::int64_t look_ns_ = 0;
  Index behind_{};  // of what is looked for now: a checkpoint behind this entry
  Index held_{}, begins_{};
  std::int64_t began_ns_ = 0;
  // Without a server:
  std::int64_t look_first_ns_ = 0;  // when it looks for a checkpoint again,
  std::int64_t known_ns_ = 0;       // and since when it has known one; 0: it knows none
};

}  // namespace crane::replica
