// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translates a node's configuration into consensus options, and explains why consensus cannot open.
//
// Threads: pure functions.

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// Whether the log in memory keeps all entries after the newest checkpoint of this machine: true if
// all replicas run on this machine and checkpoints are taken.
bool keeps_whole_log(const Config& config);
// Options for the group, its log and this replica's place in it.
consensus::Options member_options(const Config& config);
// All options except callbacks and the checkpoint, for a replica that runs the server.
consensus::Options consensus_options(const Config& config);

// The error that the node reports if the log cannot be opened, with the node's exit status.
// `restored`: the node began at a checkpoint.
Error log_failure(const Error& error, const Config& config, bool restored);

}  // namespace crane::node
