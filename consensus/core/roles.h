// SPDX-License-Identifier: Apache-2.0
#pragma once
// The roles of replicas and of members of a group, and the causes of elections.
//
// Threads: plain values.

#include <cstdint>

#include "dmt/base/ids.h"

namespace crane::consensus {

enum class Role : std::uint8_t {
  kStarting,
  kFollower,  // a voter that follows
  kCandidate,
  kLeader,
  kLearner,  // no voter by the newest CONFIG in its log, or none yet
  kFailed,
  kRemoved,  // the group went on without this replica: it is over
};
constexpr bool votes(Role role) noexcept {
  return role == Role::kFollower || role == Role::kCandidate || role == Role::kLeader;
}

enum class MemberRole : std::uint8_t {
  kNone,       // not a member: gets no key, is not heard
  kLearner,    // gets the stream; never counts or leads
  kReturning,  // a learner that voted before it lost its memory: votes again once it caught up
  kVoter,
  kAnalysis,  // a learner for ever: its server is watched by a tool, and could not serve (CORE-M7)
};

enum class ElectionCause : std::uint8_t {
  kFirst,      // this process was started
  kDeath,      // the leader's process died
  kSuspicion,  // its heartbeat was stalled
  kTransfer,   // it handed over
  kStepDown,   // it gave up
};

// The last election, as this replica saw it.
struct ElectionStatus {
  View view{};                // 0: none yet
  std::uint64_t at_ns = 0;    // CLOCK_MONOTONIC: it led, or followed with a repaired log
  std::uint64_t took_ns = 0;  // since it missed the leader before
  ElectionCause cause{};
};

}  // namespace crane::consensus
