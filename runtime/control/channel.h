// SPDX-License-Identifier: Apache-2.0
#pragma once
// The channel between crane-run and one of its nodes: a SOCK_SEQPACKET socket with one JSON object
// per message and at most one descriptor.  An Outbox (outbox.h) sends, receive_message() receives.
//
// Threads: one.

#include <string>
#include <utility>

#include "dmt/base/result.h"

namespace crane::control {

// A pair of connected sockets: crane-run's (non-blocking) and the node's.
Result<std::pair<int, int>> make_channel();

struct ChannelMessage {
  std::string text;  // JSON; empty: the other side is gone
  int fd = -1;       // the descriptor that came with it, which the caller must close; -1: none
};
// Never waits.  Fails with kBusy if there is no message.
Result<ChannelMessage> receive_message(int channel);

}  // namespace crane::control
