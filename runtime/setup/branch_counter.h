// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks whether this machine, with these options, can measure slices by the processor's branches
// (--branch-counter).
//
// Threads: any.

#include <string>
#include <vector>

#include "runtime/setup/messages.h"
#include "runtime/setup/option_table.h"

namespace crane::setup {

// `options` and `detach` include those of the profile.  Errors: kNoBranchCounter.
Outcome check_branch_counter(const NodeOptions& options, bool parallel,
                             const std::vector<std::string>& detach);
// Checks only the machine.  Errors: kNoBranchCounter.
Outcome check_branch_event();

}  // namespace crane::setup
