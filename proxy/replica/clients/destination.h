// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the server connects to.
//
// Threads: pure functions.

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>

#include "dmt/sequence/output.h"
#include "proxy/replica/clients/bodies.h"

namespace crane::proxy {

struct Destination {
  OutboundRequest request{};
  std::string path = {};  // of a unix socket or a FIFO, as the server names it

  // Such a connection ends with its leader, because the kernel does not report how much of the
  // output the peer has.
  bool is_unix() const noexcept { return request.peer.family == AF_UNIX; }
  // The bytes arrive through a unix socket of the node.
  bool is_fifo() const noexcept { return is_unix() && request.peer.port == kFifoToRead; }
};
// Reads the body of OutputType::kConnect; false: it is malformed.
inline bool read_destination(std::span<const std::byte> bytes, Destination& to) {
  if (!read_body(bytes, to.request)) return false;
  const auto rest = bytes.subspan(sizeof to.request);
  to.path.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  return to.is_unix() != to.path.empty();
}

}  // namespace crane::proxy
