// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether slices can be counted by the processor's branches (--branch-counter) here, with these
// options.
//
// Threads: any.

#include <string>
#include <vector>

#include "runtime/setup/messages.h"
#include "runtime/setup/option_table.h"

namespace crane::setup {

// `options` and `detach` with the profile's.  Status: kNoBranchCounter.
Outcome check_branch_counter(const NodeOptions& options, bool parallel,
                             const std::vector<std::string>& detach);
// The machine alone; likewise.
Outcome check_branch_event();

}  // namespace crane::setup
