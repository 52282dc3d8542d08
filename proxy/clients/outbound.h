// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others: what was asked for, and the socket of one.
// server_outbound.cc opens it and keeps it.
//
// Threads: the node's one thread.

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>

#include "dmt/base/result.h"
#include "dmt/sequence/output.h"
#include "proxy/clients/client_socket.h"

namespace crane::proxy {

// An address as the kernel has it.
struct HostAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};
HostAddress host_address(const VirtualAddress& a) noexcept;

// The destinations that the server has asked for; each is named once in the log.
class Destinations {
 public:
  static constexpr std::size_t kNamedMost = 256;  // the others are one, "others"
  struct Counts {
    std::uint64_t connections = 0;  // asked for
    bool allowed = true;
  };

  void asked(const VirtualAddress& to, bool is_allowed);
  const std::map<std::string, Counts>& all() const noexcept { return all_; }

 private:
  std::map<std::string, Counts> all_;  // by address and port
};

// A non-blocking socket that is being connected.  Error: its number is what connect() came to.
Result<ClientSocket> open_outbound(const OutboundRequest& request);
// The result of a connect() that has finished: 0, or an errno.
int outcome_of(const ClientSocket& socket) noexcept;

}  // namespace crane::proxy
