// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/outbound.h"

#include <algorithm>
#include <sstream>

#include "runtime/setup/address.h"

namespace crane::setup {
bool Outbound::allows(const VirtualAddress& to) const noexcept {
  return any || std::any_of(only.begin(), only.end(), [&to](const VirtualAddress& one) {
           return one.port == to.port && same_ip(one, to);
         });
}

std::optional<Outbound> parse_outbound(const std::string& text) {
  if (text == "any") return Outbound{true};
  Outbound outbound;
  if (text == "none") return outbound;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    VirtualAddress address{};
    if (!parse_address(word, address)) return std::nullopt;
    outbound.only.push_back(address);
  }
  if (outbound.only.empty()) return std::nullopt;
  return outbound;
}

std::optional<VirtualAddress> parse_resolver(const std::string& text) {
  VirtualAddress address{};
  if (text.empty() || parse_address(text, address) || parse_address(text + ":53", address)) {
    return address;
  }
  return std::nullopt;
}

Outcome check_resolver(const std::string& text) {
  if (parse_resolver(text)) return Done{};
  return failure(Status::kUsage, "--resolver", text, "not an address",
                 "write it as 10.0.0.1, 10.0.0.1:53 or [2001:db8::1]:53");
}

Outcome check_outbound(const std::string& text) {
  if (parse_outbound(text)) return Done{};
  return failure(Status::kUsage, "--outbound", text, "not addresses with ports",
                 "write it as any, none, or 10.0.0.1:80,[2001:db8::1]:80");
}

}  // namespace crane::setup
