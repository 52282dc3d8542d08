// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which connections the server may open, as --outbound says it.
//
// Threads: pure functions.

#include <string>

#include "proxy/clients/outbound.h"

namespace crane::node {

// Of a text that setup::parse_outbound takes; any other allows nothing.
proxy::OutboundPolicy outbound_policy(const std::string& text);

}  // namespace crane::node
