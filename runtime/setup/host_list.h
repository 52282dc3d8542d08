// SPDX-License-Identifier: Apache-2.0
#pragma once
// The argument of crane-run --hosts: h1,user@h2,h3=10.0.0.3:7100.
//
// Threads: plain functions; resolve_hosts() may block for name lookups.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

inline constexpr std::uint16_t kReplicaPort = 7100;

struct HostWord {
  std::string name;     // for the remote shell
  std::string address;  // where the other replicas reach it; an IP address
  std::uint16_t port = kReplicaPort;
};

// "h", "h:port", "h=address", "h=address:port" or "h=[address]:port", separated by commas.  A
// missing address stays empty, unless the name is an address.  Errors: kUsage; kReplicas for a
// number of hosts that is even or less than three.
Outcome parse_hosts(const std::string& text, std::vector<HostWord>& hosts);
// Looks up the missing addresses.  Errors: kHost; kUsage if two hosts have the same address.
Outcome resolve_hosts(std::vector<HostWord>& hosts);

}  // namespace crane::setup
