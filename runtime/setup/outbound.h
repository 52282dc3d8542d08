// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a server may connect.  Users write "any", "none", or addresses with ports, "10.0.0.1:80" or
// "[2001:db8::1]:80", separated by commas.  Also the resolver for the server's names.
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

// nullopt: `text` is none of these.
std::optional<Outbound> parse_outbound(const std::string& text);
// Parses "10.0.0.1", "10.0.0.1:53" or "[2001:db8::1]:53".  "" gives family 0: the resolvers of
// /etc/resolv.conf.
std::optional<VirtualAddress> parse_resolver(const std::string& text);
// Check the user's text.  Errors: kUsage.
Outcome check_resolver(const std::string& text);
Outcome check_outbound(const std::string& text);

}  // namespace crane::setup
