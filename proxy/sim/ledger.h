// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares the log with what clients have sent: each byte once, each client once, the last urgent
// byte with its mark and no other byte with one.
//
// Threads: one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"
#include "proxy/sim/client.h"

namespace crane::proxy::sim {

class Ledger {
 public:
  struct Line {
    std::uint64_t conn = 0;
    SocketId socket{};
    unsigned client = 0;
    std::uint64_t committed = 0;  // bytes
    std::uint64_t mark = 0;       // the end of the last urgent byte; 0: none was committed
    std::uint64_t closed_at = 0;  // the entry at which the server closed it; 0: it is open
  };

  // `clients`, whose index is the client's number - 1, outlives the object.
  explicit Ledger(const std::vector<SimClient>& clients) : clients_(clients) {}

  // Adds the next committed entry.  Returns a complaint, or "".
  std::string add(std::uint64_t index, EntryType type, std::span<const std::byte> body);
  void closed(std::uint64_t conn, std::uint64_t index);
  // nullptr: the log has no such connection.
  const Line* of(SocketId socket) const;
  const Line* of_connection(std::uint64_t conn) const;
  // Called when all clients should have reached their end.  Returns a complaint, or "".
  std::string at_end() const;

 private:
  std::string add_bytes(Line& line, std::span<const std::byte> bytes, bool ends_urgent);

  const std::vector<SimClient>& clients_;
  std::vector<Line> lines_;
};

}  // namespace crane::proxy::sim
