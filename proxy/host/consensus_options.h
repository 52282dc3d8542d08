// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node's configuration means for its consensus, and why consensus could not begin.
//
// Threads: pure functions.

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// Whether the log in memory stays whole behind the newest checkpoint of this machine: where all
// replicas are on it, and checkpoints are taken.
bool keeps_whole_log(const Config& config);
// The group, its log and this replica's place in it.
consensus::Options member_options(const Config& config);
// All but callbacks and checkpoint, of a replica that runs the server.
consensus::Options consensus_options(const Config& config);

// What the node reports when the log could not be opened, with the status that it ends with.
// `restored`: the node began at a checkpoint.
Error log_failure(const Error& error, const Config& config, bool restored);

}  // namespace crane::node
