// SPDX-License-Identifier: Apache-2.0
#pragma once
// A FIFO of this host that the server reads.  A client must be a stream socket, so the FIFO's bytes
// are put into one socket of a pair, and its end as well when the last writer has gone.
//
// Threads: the node's one thread, inside its event loop.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <array>
#include <cstddef>

#include "dmt/base/result.h"
#include "proxy/clients/outbound.h"

namespace crane::proxy {

// Opens the FIFO for reading, non-blocking.  Error: its number is the errno of open().
Result<int> open_fifo(const HostPath& place);

class FifoReader {
 public:
  // Takes over the FIFO and its socket of the pair.
  FifoReader(event_base* base, int fifo, int socket);
  ~FifoReader();
  FifoReader(const FifoReader&) = delete;
  FifoReader& operator=(const FifoReader&) = delete;

  // The server no longer reads it, or has read its end.
  bool is_over() const noexcept { return is_over_; }

 private:
  static void on_bytes(int fd, short what, void* reader);
  static void on_room(int fd, short what, void* reader);
  static void on_end(int fd, short what, void* reader);

  void read();
  void write();
  void stop();

  const int fifo_, socket_;
  event bytes_{}, room_{}, end_{};
  std::array<std::byte, 16 * 1024> held_;  // [begin_, size_) is not in the socket yet
  std::size_t begin_ = 0, size_ = 0;
  bool is_over_ = false;
};

}  // namespace crane::proxy
