// SPDX-License-Identifier: Apache-2.0
// Names of members' roles, roles and election causes in status and logs.
#include "consensus/consensus.h"

namespace crane::consensus {

const char* name(MemberRole role) noexcept {
  switch (role) {
    case MemberRole::kNone:
      return "none";
    case MemberRole::kLearner:
      return "learner";
    case MemberRole::kReturning:
      return "returning";
    case MemberRole::kVoter:
      return "voter";
    case MemberRole::kAnalysis:
      return "analysis";
  }
  return "?";
}

const char* name(ElectionCause cause) noexcept {
  switch (cause) {
    case ElectionCause::kFirst:
      return "start";
    case ElectionCause::kDeath:
      return "death of the leader";
    case ElectionCause::kSuspicion:
      return "suspicion";
    case ElectionCause::kTransfer:
      return "transfer";
    case ElectionCause::kStepDown:
      return "the leader stepped down";
  }
  return "?";
}

const char* name(Role role) noexcept {
  switch (role) {
    case Role::kStarting:
    case Role::kFollower:
      return "follower";
    case Role::kCandidate:
      return "candidate";
    case Role::kLeader:
      return "leader";
    case Role::kLearner:
    case Role::kFailed:
    case Role::kRemoved:
      return "learner";
  }
  return "?";
}

}  // namespace crane::consensus
