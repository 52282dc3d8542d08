// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a replica begins: at one of the existing checkpoints, at the log's beginning, or with a
// vote and no server.
//
// Threads: pure functions over plain values.
// INVARIANT START-3  A replica begins at a distrusted checkpoint only if it can begin neither at
//                    another one nor at the log's beginning: there is no other, or the previous
//                    process found that the log does not reach back there (NoteLogGone).

#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"
#include "proxy/replica/step.h"

namespace crane::replica {

struct BeginRules {
  bool restores = false;   // the replica existed before: it begins at a checkpoint
  bool may_begin = false;  // without a checkpoint it may begin at the log's beginning
  bool skips = false;      // it uses no checkpoint
  bool named = false;      // an operator named the checkpoint
};

// Whether to try that checkpoint.  The newest is tried first, the distrusted ones last.  `gone`:
// the previous process found that the log begins after that entry.
enum class Try : std::uint8_t { kYes, kNo, kLeftOut, kDistrusted };
constexpr Try try_checkpoint(const BeginRules& rules, Index at, bool distrusted,
                             std::optional<Index> gone) noexcept {
  if (rules.skips || (gone && at <= *gone)) return Try::kNo;
  if (!distrusted || rules.named) return Try::kYes;
  // START-3: without `restores` the log's beginning is next.
  return (rules.may_begin || !rules.restores) && !gone ? Try::kLeftOut : Try::kDistrusted;
}

// The next step if no checkpoint could be used.
enum class Otherwise : std::uint8_t {
  kLogDecides,     // the log knows whether a checkpoint is needed
  kFromBeginning,  // all inputs are run
  kNowhere,        // the node ends
};
constexpr Otherwise otherwise(const BeginRules& rules) noexcept {
  if (!rules.restores) return Otherwise::kLogDecides;
  return rules.may_begin ? Otherwise::kFromBeginning : Otherwise::kNowhere;
}

// The log does not reach back to where the server would begin.  True: the replica votes without one
// (VOTES-1).  A process that skips checkpoints ends instead, because the next one does not skip
// them.  A group of one replica has no other to wait for.
constexpr bool may_only_vote(const BeginRules& rules, unsigned replicas, bool member) noexcept {
  return !rules.skips && replicas > 1 && member;
}

}  // namespace crane::replica
