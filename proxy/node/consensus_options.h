// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node's configuration means for its consensus, and why consensus could not begin.
//
// Threads: pure functions.

#include <string>
#include <utility>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/node/config.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// All but callbacks and checkpoint.
consensus::Options consensus_options(const Config& config);

// Why the log could not be opened, and with which status the node ends.  `restored`: the node
// began at a checkpoint.
std::pair<ExitStatus, std::string> why_no_log(const Error& error, const Config& config,
                                              bool restored);

// "WHAT: the kernel's reason".
std::string reason_of(const Error& error);

}  // namespace crane::node
