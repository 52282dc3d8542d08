// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whom the server connects to.
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

  // The connection ends with its leader: the kernel does not say how much of the output its peer
  // has.
  bool is_unix() const noexcept { return request.peer.family == AF_UNIX; }
  // Its bytes come by a unix socket of the node's own.
  bool is_fifo() const noexcept { return is_unix() && request.peer.port == kFifoToRead; }
};
// The body of OutputType::kConnect; false: it is none.
inline bool read_destination(std::span<const std::byte> bytes, Destination& to) {
  if (!read_body(bytes, to.request)) return false;
  const auto rest = bytes.subspan(sizeof to.request);
  to.path.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  return to.is_unix() != to.path.empty();
}

}  // namespace crane::proxy
