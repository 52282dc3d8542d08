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
  kLearner,  // no voter by the newest CONFIG in its log, or no member yet
  kFailed,
  kRemoved,  // the group continues without this replica
};
constexpr bool votes(Role role) noexcept {
  return role == Role::kFollower || role == Role::kCandidate || role == Role::kLeader;
}

enum class MemberRole : std::uint8_t {
  kNone,       // gets no key; its messages are ignored
  kLearner,    // gets the stream; never counts or leads
  kReturning,  // a learner that lost its memory; it gets its vote back later
  kVoter,
  kAnalysis,  // a permanent learner: a tool watches its server, which could not serve (CORE-M7)
};

enum class ElectionCause : std::uint8_t {
  kFirst,      // this process started
  kDeath,      // the leader's process died
  kSuspicion,  // its heartbeat was stalled
  kTransfer,   // the leader handed over
  kStepDown,   // the leader gave up
};

// The last election, as this replica saw it.
struct ElectionStatus {
  View view{};                // 0: none yet
  std::uint64_t at_ns = 0;    // CLOCK_MONOTONIC: it led, or followed with a repaired log
  std::uint64_t took_ns = 0;  // since it lost the previous leader
  ElectionCause cause{};
};

}  // namespace crane::consensus
