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
};

// `members`: as in summarise(), [{"replica": 0, "member": "voter"}, ...].
ReplaceStep next_step(const nlohmann::json& members, int old, int fresh);

}  // namespace crane::launcher
