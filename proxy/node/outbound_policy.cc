// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/outbound_policy.h"

#include "runtime/setup/outbound.h"

namespace crane::node {

proxy::OutboundPolicy outbound_policy(const std::string& text) {
  const auto outbound = setup::parse_outbound(text);
  if (!outbound) return {false, {}};
  return {outbound->any, outbound->only};
}

}  // namespace crane::node
