// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others, by TCP or to a unix socket of this host: what was
// asked for, and the socket of one.
// server_outbound.cc opens it and keeps it.
//
// Threads: the node's one thread.

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

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

// Whom the server connects to.
struct Destination {
  OutboundRequest request{};
  std::string path = {};  // of a unix socket, as the server names it

  // The connection ends with its leader: the kernel does not say how much of the output its peer
  // has.
  bool is_unix() const noexcept { return request.peer.family == AF_UNIX; }
  std::string name() const;  // address and port, or the path
};
// The body of OutputType::kConnect; false: it is none.
bool read_destination(std::span<const std::byte> bytes, Destination& to);

// Where a socket of the server lies on this host.
struct HostPath {
  std::string directory;  // empty: nowhere
  std::string below;      // a path from there, which does not lead out of it
};
using FindSocket = std::function<HostPath(std::string_view path)>;

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
  std::map<std::string, Counts> all_;  // by Destination::name()
};

// A non-blocking socket that is being connected.  Error: its number is what connect() came to.
Result<ClientSocket> open_outbound(const OutboundRequest& request);
// .. to a unix socket; EAGAIN: its backlog is full, and nothing tells when that changes.
Result<ClientSocket> open_unix(const HostPath& place);
// The result of a connect() that has finished: 0, or an errno.
int outcome_of(const ClientSocket& socket) noexcept;

}  // namespace crane::proxy
