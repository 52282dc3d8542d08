// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deterministic server: its behaviour depends only on the entries that it admits.
//
// It answers each byte of a client with two bytes that are unique to this client and place.  A byte
// kHalf ends the output, and kQuit ends the connection, after the answer to that byte; the client's
// FIN ends the connection when everything is answered.  The server reads no more than it has room
// to answer (D15).
//
// Pure.  Threads: one.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "dmt/base/ids.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/replica/clients/connection.h"

namespace crane::proxy::sim {

inline constexpr char kHalf = '^', kQuit = '!';

// The answer to the byte at position `at` of a client's input.
std::string answer(unsigned client, std::uint64_t at, char byte);

class EchoServer {
 public:
  // `send_buffer`: S, as in ConnectionOptions.
  explicit EchoServer(std::uint64_t send_buffer) : send_buffer_(send_buffer) {}

  // Receives a record of its output, as in the output ring.
  using Emit = std::function<void(const OutputHeader& header, std::span<const std::byte> bytes)>;
  void admit(EntryType type, Index index, std::span<const std::byte> body, const Emit& emit);

  // All connections end.
  void reset_all(const Emit& emit);

  struct Open {
    ConnectBody opened{};
    ConnectionProgress progress;
    std::string input;  // received and not read
  };
  // The connections that the server has not closed, by connection number.
  const std::map<std::uint64_t, Open>& connections() const { return connections_; }

 private:
  bool work(std::uint64_t conn, Open& open, const Emit& emit) const;

  std::uint64_t send_buffer_;
  std::map<std::uint64_t, Open> connections_;
};

}  // namespace crane::proxy::sim
