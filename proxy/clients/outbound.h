// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others, by TCP or to a unix socket of this host: what was
// asked for, and the socket of one.
// server_outbound.cc opens it and keeps it.
//
// Threads: the node's one thread.

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "dmt/base/result.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/clients/client_socket.h"
#include "proxy/replica/clients/destination.h"

namespace crane::proxy {

// An address as the kernel has it.
struct HostAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};
HostAddress host_address(const VirtualAddress& a) noexcept;

// Where a socket of the server lies on this host.
struct HostPath {
  std::string directory;  // empty: nowhere
  std::string below;      // a path from there, which does not lead out of it
};

// A descriptor (O_PATH) of the file, which must lie below the directory: a link that the server has
// made there leads to no other file of the host.  Negative: an error number.
int find_below(const HostPath& place) noexcept;

// Address and port, or the path.
std::string name_of(const Destination& to);

// The destinations that the server has asked for; each is named once in the log.
class Destinations {
 public:
  static constexpr std::size_t kNamedMost = 256;  // the others are one, "others"
  struct Counts {
    std::uint64_t connections = 0;  // asked for
    bool allowed = true;
  };

  void asked(const Destination& to, bool is_allowed);
  const std::map<std::string, Counts>& all() const noexcept { return all_; }

 private:
  std::map<std::string, Counts> all_;  // by name_of()
};

// A non-blocking socket that is being connected.  Error: its number is what connect() came to.
Result<ClientSocket> open_outbound(const OutboundRequest& request);
// .. to a unix socket; EAGAIN: its backlog is full, and nothing tells when that changes.
Result<ClientSocket> open_unix(const HostPath& place);
// The result of a connect() that has finished: 0, or an errno.
int outcome_of(const ClientSocket& socket) noexcept;

}  // namespace crane::proxy
