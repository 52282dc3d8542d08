// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a replica of this group would recover by if it were lost now: the processes as they were
// (CRIU), a new server on the files as they were, or all inputs again.
//
// Threads: pure functions, which read directories.

#include <string>

#include "checkpoint/kept.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/recovery_status.h"

namespace crane::node {

// Why no checkpoints are taken on this machine; empty: they are.  It looks for CRIU.
std::string why_no_checkpoints(const Config& config);

// `refusal`: why CRIU does not dump this server; `whole_log`: entries 1, 2, .. can still be had.
RecoveryStatus tier_status(const Config& config, const std::string& refusal,
                           checkpoint::Newest& newest_seen, bool whole_log);

}  // namespace crane::node
