// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whom a server may connect to, as users say it: "any", "none", or addresses with ports,
// "10.0.0.1:80" or "[2001:db8::1]:80", with commas between them; and which resolver is asked for
// the server's names.
//
// Threads: plain values.

#include <optional>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "runtime/setup/messages.h"

namespace crane::setup {

struct Outbound {
  bool any = false;
  std::vector<VirtualAddress> only = {};  // when not any

  bool allows(const VirtualAddress& to) const noexcept;
};

// nullopt: it is none of them.
std::optional<Outbound> parse_outbound(const std::string& text);
// "10.0.0.1", "10.0.0.1:53" or "[2001:db8::1]:53"; "" is family 0: those of /etc/resolv.conf.
std::optional<VirtualAddress> parse_resolver(const std::string& text);
// What is wrong with the user's text.
Outcome check_resolver(const std::string& text);
Outcome check_outbound(const std::string& text);

}  // namespace crane::setup
