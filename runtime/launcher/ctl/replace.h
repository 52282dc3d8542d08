// SPDX-License-Identifier: Apache-2.0
#pragma once
// The next step of `crane-ctl member replace`, which depends only on the present members.  The
// command can therefore be interrupted and run again at any point (DESIGN C7: one change at a
// time).
//
// Threads: plain functions.

#include <nlohmann/json.hpp>

namespace crane::launcher {

enum class ReplaceStep {
  kAdd,      // `fresh` becomes a learner
  kPromote,  // the learner votes, once it has caught up
  kRemove,   // `old` leaves
  kDone,
  kNoMember,  // neither `old` nor a voting `fresh` is a member: nothing to replace
  kNotNew,    // both vote, and no replacement has begun: `old` would only leave
};

// `members`: as in summarise(), [{"replica": 0, "member": "voter"}, ...].  `begun`: this command
// has made a change.  An earlier one that was interrupted left one voter more, an even number of
// them.
ReplaceStep next_step(const nlohmann::json& members, int old, int fresh, bool begun);

}  // namespace crane::launcher
