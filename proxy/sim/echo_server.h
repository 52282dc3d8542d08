// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deterministic server: what it does depends on the entries that it admits, and on nothing else.
//
// It answers each byte of a client with two that are of this client and this place alone.  A byte
// kHalf ends what it writes, kQuit the connection, each behind the answer to it; the client's FIN
// ends the connection once all is answered.  It reads no more than it has room to answer (D15).
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

// The answer to the byte at `at` of a client's.
std::string answer(unsigned client, std::uint64_t at, char byte);

class EchoServer {
 public:
  // `send_buffer`: S, as ConnectionOptions has it.
  explicit EchoServer(std::uint64_t send_buffer) : send_buffer_(send_buffer) {}

  // A record of its output, as the output ring has it.
  using Emit = std::function<void(const OutputHeader& header, std::span<const std::byte> bytes)>;
  void admit(EntryType type, Index index, std::span<const std::byte> body, const Emit& emit);

  // All connections end.
  void reset_all(const Emit& emit);

  struct Open {
    ConnectBody opened{};
    ConnectionProgress progress;
    std::string input;  // received and not read
  };
  // Those that it has not closed, by number.
  const std::map<std::uint64_t, Open>& connections() const { return connections_; }

 private:
  bool work(std::uint64_t conn, Open& open, const Emit& emit) const;

  std::uint64_t send_buffer_;
  std::map<std::uint64_t, Open> connections_;
};

}  // namespace crane::proxy::sim
