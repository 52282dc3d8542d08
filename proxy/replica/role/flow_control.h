// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flow control: the leader's server runs ahead of a majority's servers by no more than a limit.
//
// Entries are committed without the followers' processors, so nothing in the log keeps a slow
// server near: its replica holds all entries, and has run few of them.  Clients wait for the rest
// when it takes over, checkpoints wait for it, and at last its spool is full.  So followers that
// are late say how far they have come, and the leader reads no clients while it has no majority
// without them.  One slow replica of three slows no client.
//
// Lateness is time of the leader's own server: from when it first was behind where the follower is
// until it last moved.  It does not grow while the leader waits: its server gets no grants
// meanwhile either.
//
// A replica that recovers has much to run, and clients are not to wait for all of that.  But
// where inputs come as fast as it runs them it would never be done: when it has not caught up soon,
// the leader's server takes one entry for two that it runs, for a while.  Only while one more loss
// would stop the group, and clients keep half of what they had when it came back, however slowly it
// runs.
//
// A follower that says nothing counts as near: it is idle, stopped, takes a checkpoint, or has
// worked on one entry for longer than kStandsNs, and to wait for him would be of no use.
//
// Pure.  Threads: one object, one thread.
// INVARIANT FLOW-1  Clients and the leader's server wait only for followers that were heard of
//               within kHeardNs: for too few near ones for a majority, or, within kHelpNs of its
//               return, for one that recovers and runs less than twice as much as the leader's
//               server.
// INVARIANT FLOW-2  For one that recovers they wait only where the others are too few to lose one
//               more, and while the leader's server has run at least half as fast as in the second
//               before that one came.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dmt/base/ids.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/role/tuning.h"

namespace crane::replica {

// Where a server, or the log, was when.
class Trail {
 public:
  // REQUIRES: neither is less than before.
  void at(Index index, std::int64_t now_ns) noexcept;
  Index newest() const noexcept { return newest_.index; }
  // When it was first seen behind `index`; if it never was: when it last moved.
  std::int64_t left(Index index) const noexcept;
  // Where it was then, as far back as is known.
  Index where(std::int64_t then_ns) const noexcept;
  // From then until it last moved.
  std::int64_t since(Index index) const noexcept { return newest_.at_ns - left(index); }

 private:
  struct Step {
    Index index{};
    std::int64_t at_ns = 0;
  };
  static constexpr std::size_t kSteps = 2 * kLagMostNs / kTrailStepNs;
  std::array<Step, kSteps> steps_{};  // for who is behind the oldest it counts from there
  std::uint64_t used_ = 0;            // ever; steps_[(used_ - 1) % kSteps] is the last
  Step newest_;
};

// The follower's side: whether to say something.
class ProgressReport {
 public:
  void committed(Index index, std::int64_t now_ns) noexcept { log_.at(index, now_ns); }
  // Now and then while the oldest entry that waits is kLateNs old, and once when none is any more.
  bool due(Index applied, std::int64_t now_ns) noexcept;
  // After due(): when to ask it again at the latest; INT64_MAX: with the next event.
  std::int64_t again_ns(std::int64_t now_ns) const noexcept;
  // How old the oldest entry is that the own server has not admitted; 0: it has admitted all.
  std::int64_t behind_ns(Index applied, std::int64_t now_ns) const noexcept {
    return applied >= log_.newest() ? 0 : std::max<std::int64_t>(0, now_ns - log_.left(applied));
  }
  // The own server has had no old entry for kHelpAfterNs.
  bool caught_up(std::int64_t now_ns) const noexcept {
    return near_ns_ != 0 && now_ns - near_ns_ >= kHelpAfterNs;
  }

 private:
  Trail log_;
  Index reported_{}, seen_{};
  std::int64_t reported_ns_ = 0, moved_ns_ = 0;
  std::int64_t near_ns_ = 0;    // since when no entry is late; 0: one is, or there is no log yet
  bool reported_late_ = false;  // and nothing else since
};

// How far a follower's server is behind its leader's.
struct FollowerLag {
  std::uint64_t entries = 0;
  std::int64_t ns = 0;
};

// The leader's side.
class FlowControl {
 public:
  // 0: no client waits.  REQUIRES: limit_ns <= kLagMostNs.
  explicit FlowControl(std::int64_t limit_ns) noexcept;
  // Another reign begins: what was heard before is forgotten.
  void lead() noexcept;
  void applied(Index own, std::int64_t now_ns) noexcept { trail_.at(own, now_ns); }
  void heard(ReplicaId from, const ProgressMessage& note, std::int64_t now_ns) noexcept;
  // By what it last said; nothing for one that counts as near.
  FollowerLag lag_of(ReplicaId who, std::int64_t now_ns) const noexcept;
  bool anybody_late(std::int64_t now_ns) const noexcept;
  // Whether clients wait now.  `others`: the other voters that are there; `needed`: as many of them
  // are a majority together with the leader.
  bool holds(std::span<const ReplicaId> others, std::size_t needed,
             std::int64_t now_ns) const noexcept;

 private:
  struct Follower {
    ProgressMessage said;
    std::uint64_t returned = 0;  // the last return that was heard of
    std::int64_t heard_ns = 0;   // 0: never
    std::int64_t came_ns = 0;    // when it was first heard to recover,
    std::uint64_t had = 0;       // and what the leader's server had run in the second before
    // Since it is helped: when that began, where it was then, and where the leader's server was.
    bool helped = false;
    std::int64_t helped_ns = 0;
    Index from{}, own{};
  };
  static bool is_heard(const Follower& f, std::int64_t now_ns) noexcept;
  bool late(const Follower& f, std::int64_t now_ns) const noexcept;
  bool helps(std::int64_t now_ns) const noexcept;

  std::int64_t limit_ns_;
  Trail trail_;
  std::array<Follower, kReplicasMax> followers_{};
  std::int64_t heard_ns_ = 0;  // of anybody
};

}  // namespace crane::replica
