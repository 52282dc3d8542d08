// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica that cannot continue where it is, and the checkpoint at which it restarts: a follower
// that lacks entries which have left the others' logs; one that is behind for so long that a newer
// checkpoint overtakes it (overtaking.h); one without a server, which votes (VOTES-1).
//
//   FindCheckpoints --Found--> Restart, or FetchCheckpoint from another host and again later
//
// Threads: the node's one thread.
// INVARIANT LACK-1  A replica gives up its server only if a checkpoint exists whose entry is after
//                   all entries that the replica has; if it is overtaken, after all that its server
//                   has run.
// INVARIANT LACK-2  For kUnusableNs a checkpoint that could not be unpacked when the replica began
//                   is no reason to restart.
// INVARIANT VOTES-1  A replica whose log does not reach back to where a server can begin votes and
//                    holds the log, without a server, until there is a checkpoint.  While another
//                    replica serves, it restarts only at one after all that its log held, and as
//                    may_restart() decides.

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

// Whether no connected voter other than `self` has a server; `self` has none.
bool none_has_server(std::span<const MemberView> members, ReplicaId self) noexcept;

// The other voters that are connected and report that they receive the log are a majority.
bool suffice_without_self(std::span<const MemberView> members, ReplicaId self) noexcept;

// Whether the replica may restart at a checkpoint at `at`, which it has known for `known_ns`
// (VOTES-1).  While another replica's server serves, the replica with the lowest id restarts first,
// unless it does not for kTurnNs.  It must also hold that suffice_without_self(), unless no other
// voter connects for kSpareNs, or the group has only two; then clients wait for a moment.
inline constexpr std::int64_t kTurnNs = 10'000'000'000, kSpareNs = 30'000'000'000;
bool may_restart(std::span<const MemberView> members, ReplicaId self, Index at,
                 std::int64_t known_ns) noexcept;

class MissingEntries {
 public:
  explicit MissingEntries(ReplicaId self, Mutant mutant = Mutant::kNone)
      : self_(self), mutant_(mutant) {}

  // The replica begins.  Its log holds the entries up to `held`, and its server begins after
  // `begins`, or was meant to.
  void begin(Index held, Index begins, std::int64_t now_ns) noexcept;
  // Its server runs, and has not caught up; restoring it took `took_ns`.
  void server_runs(Index applied, std::int64_t took_ns, std::int64_t now_ns) noexcept {
    overtaking_.begin(applied, took_ns, now_ns);
  }
  // A replica has published a checkpoint.
  void on_report(Index at, std::int64_t now_ns) noexcept {
    overtaking_.on_report(at);
    look_first_ns_ = now_ns;
  }

  // The step of a follower.  `caught_up` is true if it has run all entries that it missed.
  void step(bool caught_up, const Facts& facts, ActionList& out);
  // The step of a replica that only votes.
  void step_first(const Facts& facts, ActionList& out);
  void found(const Found& found, const Facts& facts, ActionList& out);
  // When step_first() must be called next.
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
  Index behind_{};  // the search is for a checkpoint after this entry
  Index held_{}, begins_{};
  std::int64_t began_ns_ = 0;
  // Without a server:
  std::int64_t look_first_ns_ = 0;  // when it looks for a checkpoint again
  std::int64_t known_ns_ = 0;       // since when it has known a checkpoint; 0: it knows none
};

}  // namespace crane::replica
