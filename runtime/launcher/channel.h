// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run's end of the control channel to one node (group.h describes the protocol).
//
// Threads: one.

#include <optional>
#include <string>

#include "dmt/base/result.h"

namespace crane::launcher {

// A pair of connected SOCK_SEQPACKET sockets: crane-run's (non-blocking) and the node's.
Result<std::pair<int, int>> make_channel();

enum class Got { kMessage, kNothing, kGone };
// `passed`: the descriptor that came with the message, which the caller must close; -1: none.
Got receive_message(int channel, std::string& json, int& passed);

}  // namespace crane::launcher
