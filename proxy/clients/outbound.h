// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connections that the server opens to others, by TCP or to a unix socket of this host: the
// requests, and the socket of a connection.  proxy_outbound.cc opens and keeps it.
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

// An address in the kernel's form.
struct HostAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};
HostAddress host_address(const VirtualAddress& a) noexcept;

// The place of a server's socket on this host.
struct HostPath {
  std::string directory;  // empty: there is none
  std::string below;      // path relative to `directory`, which does not lead out of it
};

// A descriptor (O_PATH) of the file, which must be below the directory: a link that the server has
// made there must lead to no other file of the host.  Negative: an error number.
int find_below(const HostPath& place) noexcept;

// Address and port, or the path.
std::string name_of(const Destination& to);

// The server's destinations; each is listed once in the log.
class Destinations {
 public:
  static constexpr std::size_t kNamedMost = 256;  // all further ones count as one, "others"
  struct Counts {
    std::uint64_t connections = 0;  // requested connections
    bool allowed = true;
  };

  void asked(const Destination& to, bool is_allowed);
  const std::map<std::string, Counts>& all() const noexcept { return all_; }

 private:
  std::map<std::string, Counts> all_;  // by name_of()
};

// Opens a non-blocking socket and connects it.  Error: its number is the errno of connect().
Result<ClientSocket> open_outbound(const OutboundRequest& request);
// open_outbound() for a unix socket.  EAGAIN: its backlog is full, and no event reports when that
// changes.
Result<ClientSocket> open_unix(const HostPath& place);
// The result of a finished connect(): 0 or an errno.
int outcome_of(const ClientSocket& socket) noexcept;

}  // namespace crane::proxy
