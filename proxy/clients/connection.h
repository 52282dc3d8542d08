// SPDX-License-Identifier: Apache-2.0
#pragma once
// One client of the leader: bytes in become entries, the server's bytes go out.
//
// Input: each read becomes a DATA entry; never more than the receive window beyond what the server
// consumed, so that a replica's memory per connection is bounded (rule 1).  Output: sent at
// once, queued when the client does not take it; the queue is bounded because the server sees a
// virtual send buffer of S bytes which only WINDOW entries free (DESIGN D15).
//
// The socket's life: open -> (FIN of the client: input ended) -> (the server shuts down or closes:
// FIN after the queue) -> gone.  The connection's life ends when the server closed it and the queue
// is out; a client that vanishes earlier leaves a record without a socket behind.
//
// Threads: one object, one thread.
// INVARIANT CONN-1  proposed - consumed <= receive window.
// INVARIANT CONN-2  drained <= received; drained = window_reported_ or more.
// INVARIANT CONN-3  SHUTDOWN at most once, RESET at most once, nothing after RESET.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proxy/clients/batch.h"

namespace crane::proxy {

struct ConnectionOptions {
  std::uint64_t send_buffer = 1U << 20;  // S, the same as the server's configuration has
  std::uint64_t receive_window = 256 * 1024;
  std::uint64_t first_window = 32 * 1024;  // before the server has read anything
};

class Connection : public Opener {
 public:
  // Takes over `fd`, a connected non-blocking stream socket.
  Connection(int fd, std::uint16_t port, const ConnectionOptions& options) noexcept
      : options_(&options), fd_(fd), port_(port) {}
  virtual ~Connection() { drop_socket(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const noexcept { return fd_; }  // -1: the socket is gone
  std::uint16_t port() const noexcept { return port_; }

  // --- from the client ---------------------------------------------------------------------------
  enum class Read : std::uint8_t {
    kSome,     // more may be there
    kDrained,  // nothing more now
    kFull,     // the receive window is used up: wait for consumed()
    kEnded,    // FIN or the end of the connection: nothing will come any more
  };
  Read read(Batch& batch);
  // The server has read `total` bytes in all.
  void consumed(std::uint64_t total) noexcept;
  bool window_open() const noexcept { return proposed_ - consumed_ < window(); }
  bool input_ended() const noexcept { return input_ended_; }
  std::uint64_t window() const noexcept {
    return consumed_ == 0 ? options_->first_window : options_->receive_window;
  }

  // --- to the client -----------------------------------------------------------------------------
  // Each returns false when the socket wants a write event to go on.
  bool write(std::span<const std::byte> bytes, Batch& batch);
  bool shut_down(Batch& batch);          // FIN behind what was written
  bool close(bool reset, Batch& batch);  // the server's last reference is gone
  bool flush(Batch& batch);              // the socket took something: go on
  std::size_t queued() const noexcept { return queue_.size() - queue_sent_; }

  // Resets the client now; with `tell` the servers learn of it by a RESET entry.
  void reset(Batch& batch, bool tell);
  // The server has closed and nothing is left to send: the record can go.
  bool finished() const noexcept { return server_closed_ && fd_ < 0; }

 protected:
  // The socket is about to be closed: whoever watches it must stop.
  virtual void closing() noexcept {}

 private:
  void broken(Batch& batch);
  void drop_socket() noexcept;
  void drop_socket_with_reset() noexcept;
  void propose_window(Batch& batch);
  bool finish_output() noexcept;

  const ConnectionOptions* options_;
  int fd_;
  std::uint16_t port_;
  bool input_ended_ = false;  // SHUTDOWN or RESET was proposed
  bool reset_told_ = false;   // RESET was proposed
  bool fin_wanted_ = false;   // the server shut down writing
  bool fin_sent_ = false;
  bool server_closed_ = false;
  std::uint64_t proposed_ = 0, consumed_ = 0;
  std::uint64_t received_ = 0;  // output bytes of the server
  std::uint64_t drained_ = 0;   // of these, taken by the client's socket
  std::uint64_t window_reported_ = 0;
  std::vector<std::byte> queue_;
  std::size_t queue_sent_ = 0;
};

}  // namespace crane::proxy
