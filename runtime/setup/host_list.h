// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of crane-run --hosts: h1,user@h2,h3=10.0.0.3:7100.
//
// Threads: plain functions; resolve_hosts asks the resolver.

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

// "h", "h=address", "h=address:port" or "h=[address]:port", separated by commas.  An address that
// is not given stays empty unless the name is one.  Statuses: kUsage; kReplicas for a number that
// is even or less than three.
Outcome parse_hosts(const std::string& text, std::vector<HostWord>& hosts);
// Looks up the addresses that were not given.  Statuses: kHost; kUsage when two hosts are one.
Outcome resolve_hosts(std::vector<HostWord>& hosts);

}  // namespace crane::setup
