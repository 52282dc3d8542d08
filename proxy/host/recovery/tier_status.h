// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a replica of this group would recover if it were lost now: the processes restored by CRIU, a
// new server on restored files, or all inputs run again.
//
// Threads: pure functions, which read directories.

#include <string>

#include "checkpoint/kept.h"
#include "proxy/host/config.h"
#include "proxy/host/recovery/recovery_status.h"

namespace crane::node {

// Why no checkpoints are taken on this machine; empty: they are taken.  Looks for CRIU.
std::string why_no_checkpoints(const Config& config);
// Why the log on disk only grows, because no checkpoint is ever taken; empty if one may be, or if
// the log is not on disk.
std::string why_log_never_cut(const Config& config);

// `refusal` is CRIU's reason not to dump this server, or empty.  `whole_log` is true if the log
// still has its first entries.
RecoveryStatus tier_status(const Config& config, const std::string& refusal,
                           checkpoint::Newest& newest_seen, bool whole_log);

}  // namespace crane::node
