// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flow control: the leader's server runs ahead of a majority's servers by no more than a limit.
//
// Entries are committed without the followers' processors, so nothing in the log limits the lag of
// a slow server: its replica holds all entries, and has run few of them.  When it takes over,
// clients wait for the rest; checkpoints wait for it, and finally its spool is full.  So late
// followers report how far they are, and the leader reads no clients while the servers near its own
// are no majority.  One slow replica of three slows no client.
//
// Lateness is measured in the time of the leader's server: from the moment when that server passed
// the follower's place until it last moved.  It does not grow while the leader waits, because then
// the leader's server gets no grants either.
//
// A recovering replica has much to run, and clients must not wait for all of it.  But if inputs
// arrive as fast as it runs them, it never finishes.  So if it has not caught up soon, the leader's
// server is limited for a while to one entry for two that the follower runs.  This happens only
// while one more loss would stop the group; and however slowly the follower runs, clients keep half
// of the rate from before it returned.  That holds for each kHelpSpanNs: what the leader's server
// ran while the follower was silent is no debt.
//
// A follower that was stopped returns in the same way: it is late at its first report after
// kStalledNs of silence.
//
// A follower that reports nothing counts as near.  It is idle, stopped, takes a checkpoint, or has
// worked on one entry for longer than kStalledNs; waiting for it would not help.
//
// Pure.  Threads: one object, one thread.
// INVARIANT FLOW-1  Clients and the leader's server wait only for followers that reported within
//                   kReportValidNs: because too few followers are near for a majority, or because
//                   one recovers, returned within kHelpNs, and runs less than twice as much as the
//                   leader's server.
// INVARIANT FLOW-2  They wait for a recovering follower only if the group could not lose one more
//                   replica, and while the leader's server has run at least half as fast as in the
//                   second before the follower returned, in this span of kHelpSpanNs.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dmt/base/ids.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/role/tuning.h"

namespace crane::replica {

// The places of a server or of the log over time.
class Trail {
 public:
  // REQUIRES: neither argument is less than before.
  void at(Index index, std::int64_t now_ns) noexcept;
  Index newest() const noexcept { return newest_.index; }
  // When the place was first seen to be after `index`; if it never was: when it last moved.
  std::int64_t left(Index index) const noexcept;
  // The place at that time; the oldest known one if the time is earlier.
  Index where(std::int64_t then_ns) const noexcept;
  // The time from left() until the place last moved.
  std::int64_t since(Index index) const noexcept { return newest_.at_ns - left(index); }

 private:
  struct Step {
    Index index{};
    std::int64_t at_ns = 0;
  };
  static constexpr std::size_t kSteps = 2 * kLagMostNs / kTrailStepNs;
  std::array<Step, kSteps> steps_{};  // entries before the oldest step are counted from that step
  std::uint64_t used_ = 0;  // steps ever written; steps_[(used_ - 1) % kSteps] is the last
  Step newest_;
};

// The follower's side: whether to send a report.
class ProgressReport {
 public:
  void committed(Index index, std::int64_t now_ns) noexcept { log_.at(index, now_ns); }
  // True repeatedly while the oldest waiting entry is kLateNs old, and once when none is any more.
  bool due(Index applied, std::int64_t now_ns) noexcept;
  // The latest time for the next due(); INT64_MAX: with the next event.
  std::int64_t again_ns(std::int64_t now_ns) const noexcept;
  // The age of the oldest entry that this replica's server has not admitted; 0: it has admitted
  // all.
  std::int64_t behind_ns(Index applied, std::int64_t now_ns) const noexcept {
    return applied >= log_.newest() ? 0 : std::max<std::int64_t>(0, now_ns - log_.left(applied));
  }
  // This replica's server has had no late entry for kHelpAfterNs.
  bool caught_up(std::int64_t now_ns) const noexcept {
    return near_ns_ != 0 && now_ns - near_ns_ >= kHelpAfterNs;
  }

 private:
  Trail log_;
  Index reported_{}, seen_{};
  std::int64_t reported_ns_ = 0, moved_ns_ = 0;
  std::int64_t near_ns_ = 0;    // since when no entry is late; 0: one is, or there is no log yet
  bool reported_late_ = false;  // the last report was of a late entry
};

// How far a follower's server is behind its leader's.
struct FollowerLag {
  std::uint64_t entries = 0;
  std::int64_t ns = 0;
};

// The leader's side.
class FlowControl {
 public:
  // limit_ns 0: no client waits.  REQUIRES: limit_ns <= kLagMostNs.
  explicit FlowControl(std::int64_t limit_ns) noexcept;
  // Another reign begins: earlier reports are forgotten.
  void lead() noexcept;
  void applied(Index own, std::int64_t now_ns) noexcept { trail_.at(own, now_ns); }
  void on_report(ReplicaId from, const ProgressMessage& note, std::int64_t now_ns) noexcept;
  // According to its last report; zero for a follower that counts as near.
  FollowerLag lag_of(ReplicaId peer, std::int64_t now_ns) const noexcept;
  bool has_late_follower(std::int64_t now_ns) const noexcept;
  // Whether clients wait now.  `others` are the other connected voters; `needed` of them and the
  // leader are a majority.
  bool holds(std::span<const ReplicaId> others, std::size_t needed,
             std::int64_t now_ns) const noexcept;

 private:
  struct Follower {
    ProgressMessage last_report;
    std::uint64_t returned = 0;            // the last return that it reported
    std::int64_t last_received_ns = 0;     // 0: never
    bool was_silent = false;               // and is late since it was heard again
    std::int64_t recovering_since_ns = 0;  // when it first reported that it recovers
    std::uint64_t had = 0;  // what the leader's server had run in the second before that
    // If it is helped: when this span began, and where it and the leader's server were then.
    bool helped = false;
    std::int64_t helped_ns = 0;
    Index from{}, own{};

    bool recovers() const noexcept { return last_report.recovers != 0 || was_silent; }
  };
  static bool is_report_valid(const Follower& f, std::int64_t now_ns) noexcept;
  bool late(const Follower& f, std::int64_t now_ns) const noexcept;
  void begin_help(Follower& f, std::int64_t now_ns) const noexcept;
  void begin_span(Follower& f, std::int64_t now_ns) const noexcept;
  // The entries that the leader's server may not run yet, but has run in this span.
  std::int64_t debt(const Follower& f, std::int64_t now_ns) const noexcept;
  bool helps(std::int64_t now_ns) const noexcept;

  std::int64_t limit_ns_;
  Trail trail_;
  std::array<Follower, kReplicasMax> followers_{};
  std::int64_t last_received_ns_ = 0;  // the last report of any follower
};

}  // namespace crane::replica
