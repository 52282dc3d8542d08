// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run's end of the control channel to one node (the protocol stands in group.h).
//
// Threads: one.

#include <optional>
#include <string>

#include "dmt/base/result.h"

namespace crane::launcher {

// A pair of connected SOCK_SEQPACKET sockets: ours (non-blocking), the node's.
Result<std::pair<int, int>> make_channel();

enum class Got { kMessage, kNothing, kGone };
// `passed`: the descriptor that came with it, the caller's to close; -1: none.
Got receive_message(int channel, std::string& json, int& passed);

}  // namespace crane::launcher
