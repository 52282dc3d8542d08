// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl's end of an operator's link to nodes on other hosts, at the ports of their fabric
// (consensus/fabric/secure_link.h, kOperatorPlane; runtime/control/frame.h).
//
// Threads: plain functions.

#include <map>
#include <optional>
#include <string>

#include "consensus/fabric/secure_link.h"
#include "runtime/launcher/control_client.h"

namespace crane::launcher {

struct LinkReply {
  Reply reply = Reply::kUnreachable;
  std::string text;  // if reply is kAnswer
};

// Sends the request to all replicas of `places` at once and waits until each has answered, failed,
// or has not connected within 2 s or answered within 4 s.  A place without an address is
// kUnreachable.
std::map<int, LinkReply> ask_over_links(
    const consensus::GroupSecret& secret,
    const std::map<int, std::optional<consensus::SocketAddress>>& places,
    const std::string& request);

}  // namespace crane::launcher
