// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first turn that two replicas took differently, found in the evidence of live checking.
//
// Between two entries of the log the schedule hash can be computed again, turn by turn.  A replica
// that kept the turns between the last equal point and the first different one can prove that it
// kept all of them unchanged.
//
// Threads: pure functions.
//
// INVARIANT LIVE-V4  A turn is named only if the turns of both sides, folded from the last equal
//                    point on, give both sides' different hashes; any missing turn makes the answer
//                    kUnknown.

#include <cstdint>
#include <optional>
#include <string>

#include "dmt/sequence/turn_record.h"
#include "proxy/record/verification.h"

namespace crane::proxy {

struct FirstTurn {
  enum class Answer : std::uint8_t { kNone, kFound, kUnknown };
  Answer answer = Answer::kUnknown;
  std::string why;           // for kUnknown
  std::uint64_t number = 0;  // for kFound: the turn's number
  // nullopt: that side admitted the entry before it took this turn.
  std::optional<TurnRecord> own, theirs;
};
FirstTurn first_turn(const Evidence& own, const Evidence& theirs);

}  // namespace crane::proxy
