// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the node begins, holds the state of the machine's files that the server reads
// (checkpoint/machine_files.h), and logs it if it is not the expected one.
//
// Threads: one.

#include "dmt/base/result.h"
#include "proxy/host/config.h"

namespace crane::node {

// Holds the state that the group began with, and sets `program_file`.
Outcome hold_files_of_group(Config& config);

}  // namespace crane::node
