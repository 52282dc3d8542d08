// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first turn that two replicas took differently, from the evidence of live checking.
//
// Between two entries of the log the schedule hash can be gone along again, turn by turn: who kept
// the turns between the last equal point and the first different one can prove that it kept all of
// them, as they were.
//
// Threads: pure functions.
//
// INVARIANT LIVE-V4  A turn is named only when the turns of both sides, folded from the last equal
//               point on, give both sides' different hashes; whatever is missing makes it kUnknown.

#include <cstdint>
#include <optional>
#include <string>

#include "dmt/sequence/turn_record.h"
#include "proxy/record/verification.h"

namespace crane::proxy {

struct FirstTurn {
  enum class Answer : std::uint8_t { kNone, kFound, kUnknown };
  Answer answer = Answer::kUnknown;
  std::string why;           // kUnknown
  std::uint64_t number = 0;  // kFound: of the turn
  // nullopt: that side had admitted the entry before it took such a turn.
  std::optional<TurnRecord> own, theirs;
};
FirstTurn first_turn(const Evidence& own, const Evidence& theirs);

}  // namespace crane::proxy
