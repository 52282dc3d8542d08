// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of the machine's files that a replica's server reads (checkpoint/machine_files.h), as
// its node begins: held, and said where it is not what an operator expects.
//
// Threads: one.

#include "dmt/base/result.h"
#include "proxy/host/config.h"

namespace crane::node {

// Holds the first one of the group, and sets `program_file`.
Outcome hold_files_of_group(Config& config);

}  // namespace crane::node
