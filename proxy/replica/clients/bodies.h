// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bodies of the entries that the proxy proposes (dmt/sequence/entry.h).
//
// Threads: pure functions.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dmt/sequence/entry.h"

namespace crane::proxy {

// The bytes of a body struct.
template <typename Body>
std::span<const std::byte> bytes_of(const Body& body) noexcept {
  return std::as_bytes(std::span<const Body, 1>{&body, 1});
}

// Reads a body struct from the front of `bytes`; false if there are too few.
template <typename Body>
bool read_body(std::span<const std::byte> bytes, Body& body) noexcept {
  if (bytes.size() < sizeof body) return false;
  std::memcpy(&body, bytes.data(), sizeof body);
  return true;
}

// Passes the body struct at the front of `bytes` to `act`, if it is complete.
template <typename Body, typename Act>
void with_body(std::span<const std::byte> bytes, Act&& act) {
  Body body;
  if (read_body(bytes, body)) act(body);
}

// The body of CONNECT: the server sees its own port, not the published one.
inline ConnectBody connect_body(std::uint16_t server_port, const VirtualAddress& peer,
                                const VirtualAddress& local) noexcept {
  ConnectBody body{};
  body.port = server_port;
  body.peer = peer;
  body.local = local;
  body.local.port = server_port;
  return body;
}

}  // namespace crane::proxy
