// SPDX-License-Identifier: Apache-2.0
#include "consensus/sim/coverage.h"

#include <cstddef>

namespace crane::consensus::sim {

namespace {

template <typename State>
constexpr std::size_t kStates = 0;
template <>
constexpr std::size_t kStates<Role> = 7;
template <>
constexpr std::size_t kStates<core::PeerState> = 5;
template <>
constexpr std::size_t kStates<core::Phase> = 5;
template <>
constexpr std::size_t kStates<core::FenceState> = 3;
template <>
constexpr std::size_t kStates<core::GrantState> = 3;

template <typename State>
void list(const char* machine, const core::MoveCounts::Of<State>& counts, std::vector<Move>& out) {
  static_assert(kStates<State> <= core::MoveCounts::kStatesMax);
  for (std::size_t from = 0; from < kStates<State>; ++from) {
    for (std::size_t to = 0; to < kStates<State>; ++to) {
      const auto a = static_cast<State>(from);
      const auto b = static_cast<State>(to);
      if (!core::may_follow(a, b)) continue;
      out.push_back({std::string(machine) + " " + name(a) + " -> " + name(b), counts[from][to]});
    }
  }
}

template <typename State>
void sum(core::MoveCounts::Of<State>& total, const core::MoveCounts::Of<State>& more) {
  for (std::size_t i = 0; i < total.size(); ++i) {
    for (std::size_t j = 0; j < total[i].size(); ++j) total[i][j] += more[i][j];
  }
}

}  // namespace

std::vector<Move> declared_moves(const core::MoveCounts& counts) {
  std::vector<Move> out;
  list<Role>("role", counts.role, out);
  list<core::Phase>("phase", counts.phase, out);
  list<core::PeerState>("peer", counts.peer, out);
  list<core::FenceState>("fence", counts.fence, out);
  list<core::GrantState>("grant", counts.grant, out);
  return out;
}

void add(core::MoveCounts& total, const core::MoveCounts& more) {
  sum<Role>(total.role, more.role);
  sum<core::Phase>(total.phase, more.phase);
  sum<core::PeerState>(total.peer, more.peer);
  sum<core::FenceState>(total.fence, more.fence);
  sum<core::GrantState>(total.grant, more.grant);
}

const char* name(Role role) {
  static constexpr const char* kNames[] = {"starting", "follower", "candidate", "leader",
                                           "learner",  "failed",   "removed"};
  return kNames[static_cast<std::size_t>(role)];
}

const char* name(core::PeerState state) {
  static constexpr const char* kNames[] = {"idle", "granted", "matching", "streaming", "behind"};
  return kNames[static_cast<std::size_t>(state)];
}

const char* name(core::Phase phase) {
  static constexpr const char* kNames[] = {"none", "fencing", "asking", "adopting", "leading"};
  return kNames[static_cast<std::size_t>(phase)];
}

const char* name(core::FenceState state) {
  static constexpr const char* kNames[] = {"none", "revoking", "permitting"};
  return kNames[static_cast<std::size_t>(state)];
}

const char* name(core::GrantState state) {
  static constexpr const char* kNames[] = {"none", "pending", "given"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace crane::consensus::sim
