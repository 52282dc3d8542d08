// SPDX-License-Identifier: Apache-2.0
// The server's output: bytes for the clients' sockets, and its requests to the outside.
#include "proxy/clients/encode.h"
#include "proxy/clients/proxy.h"

namespace crane::proxy {

void Proxy::on_writable(int, short, void* argument) {
  Watch& watch = *static_cast<Watch*>(argument);
  watch.proxy->host_.woke();
  watch.proxy->clients_.writable(*watch.client);
  watch.proxy->run();
}

void Proxy::put_out(const OutputHeader& header, Pieces pieces, bool last) {
  switch (header.type) {
    case OutputType::kListen:
      return set_listening(place_of(header, pieces), true);
    case OutputType::kUnlisten:
      return set_listening(place_of(header, pieces), false, header.argument == 1);
    case OutputType::kConnect:
    case OutputType::kResolve:
      return asked(header, pieces.empty() ? std::span<const std::byte>{} : pieces.front());
    default:
      clients_.output(header, pieces, last);
      return run();
  }
}

void Proxy::hold_output(bool on) {
  clients_.hold_output(on);
  run();
}

}  // namespace crane::proxy
