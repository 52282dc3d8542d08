// SPDX-License-Identifier: Apache-2.0
#pragma once
// The moves that the core's state machines may make, as data.  Every move is asserted, and counted
// if MoveCounts is given: the simulator shows that each declared move is taken.  Staying in a state
// is no move.

#include <array>
#include <cstddef>
#include <cstdint>

#include "consensus/core/step.h"

namespace crane::consensus::core {

constexpr bool may_follow(Role from, Role to) noexcept {
  constexpr std::uint8_t kF = 1U << static_cast<int>(Role::kFollower);
  constexpr std::uint8_t kC = 1U << static_cast<int>(Role::kCandidate);
  constexpr std::uint8_t kL = 1U << static_cast<int>(Role::kLeader);
  constexpr std::uint8_t kLn = 1U << static_cast<int>(Role::kLearner);
  constexpr std::uint8_t kX = 1U << static_cast<int>(Role::kFailed);
  constexpr std::uint8_t kR = 1U << static_cast<int>(Role::kRemoved);
  constexpr std::uint8_t kAllowed[] = {
      kF | kLn | kX,       // kStarting
      kC | kLn | kX | kR,  // kFollower
      kF | kL,             // a failing candidate steps down first
      kF,                  // kLeader
      kF | kX | kR,        // kLearner: a follower once a CONFIG in its log gives it a vote
      0,                   // kFailed
      0,                   // kRemoved
  };
  return (kAllowed[static_cast<std::size_t>(from)] >> static_cast<int>(to)) & 1U;
}

// The state of one follower, as the leader or a candidate sees it.
enum class PeerState : std::uint8_t {
  kIdle,       // no key; asked again from time to time
  kGranted,    // it gave a key for this view; its last stamp is known
  kMatching,   // its log is read to find the first differing entry
  kStreaming,  // the leader writes to it; its completions count
  kBehind,     // it needs bytes that left the ring, or a checkpoint
};

constexpr bool may_follow(PeerState from, PeerState to) noexcept {
  constexpr std::uint8_t kI = 1U << static_cast<int>(PeerState::kIdle);
  constexpr std::uint8_t kG = 1U << static_cast<int>(PeerState::kGranted);
  constexpr std::uint8_t kM = 1U << static_cast<int>(PeerState::kMatching);
  constexpr std::uint8_t kS = 1U << static_cast<int>(PeerState::kStreaming);
  constexpr std::uint8_t kB = 1U << static_cast<int>(PeerState::kBehind);
  constexpr std::uint8_t kAllowed[] = {
      kG,                 // kIdle
      kI | kM | kS | kB,  // kGranted
      kI | kG | kS,       // kMatching; kGranted: it was asked twice and answers again
      kI | kG,            // kStreaming
      kI | kG,            // kBehind
  };
  return (kAllowed[static_cast<std::size_t>(from)] >> static_cast<int>(to)) & 1U;
}

// The phase of a candidate or leader.
enum class Phase : std::uint8_t {
  kNone,      // follower
  kFencing,   // promised the view to itself; its old writer is being fenced
  kAsking,    // waits for a majority of grants
  kAdopting,  // copies the best log of the quorum
  kLeading,   // START is in its log; it is leader once that is committed
};

constexpr bool may_follow(Phase from, Phase to) noexcept {
  if (to == Phase::kNone) return from != Phase::kNone;
  return static_cast<int>(to) == static_cast<int>(from) + 1 ||
         (from == Phase::kAsking && to == Phase::kLeading) ||
         (from == Phase::kAdopting &&
          to == Phase::kAsking);  // the adopted CONFIG needs more grants
}

// The request to the fabric about the right to write this replica's log.
enum class FenceState : std::uint8_t {
  kNone,        // nothing is under way
  kRevoking,    // the old writer is being fenced
  kPermitting,  // a key is being made
};

constexpr bool may_follow(FenceState from, FenceState to) noexcept {
  return (from == FenceState::kNone) != (to == FenceState::kNone);
}

// The state of the request from the promised view's owner.
enum class GrantState : std::uint8_t {
  kNone,         // no replica asked in the promised view, or this replica is its owner
  kPending,      // requested: fence, scan, permit are under way
  kKeyReceived,  // answered with a key
};

constexpr bool may_follow(GrantState from, GrantState to) noexcept {
  return from != to && !(from == GrantState::kNone && to == GrantState::kKeyReceived);
}

// How often each move was taken, summed over all machines of this kind.
struct MoveCounts {
  static constexpr std::size_t kStatesMax = 7;
  template <typename State>
  using Of = std::array<std::array<std::uint64_t, kStatesMax>, kStatesMax>;

  Of<Role> role{};
  Of<PeerState> peer{};
  Of<Phase> phase{};
  Of<FenceState> fence{};
  Of<GrantState> grant{};

  void count(Role from, Role to) noexcept { ++at(role, from, to); }
  void count(PeerState from, PeerState to) noexcept { ++at(peer, from, to); }
  void count(Phase from, Phase to) noexcept { ++at(phase, from, to); }
  void count(FenceState from, FenceState to) noexcept { ++at(fence, from, to); }
  void count(GrantState from, GrantState to) noexcept { ++at(grant, from, to); }

 private:
  template <typename State>
  static std::uint64_t& at(Of<State>& of, State from, State to) noexcept {
    return of[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
};

}  // namespace crane::consensus::core
