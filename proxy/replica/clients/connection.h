// SPDX-License-Identifier: Apache-2.0
#pragma once
// One client's connection, on every replica: its bytes become entries, the server's bytes go out.
//
// The agreed state comes from the log and from this replica's server, so all replicas have the
// same: how many bytes arrived, how many the server has read and written, how the connection ended.
// The leader also has the socket and serves it: it reads and writes.  The kernel keeps what no
// replica may lose: a client's byte stays in the socket until its DATA is committed.  Each replica
// keeps the output that may not be in the socket yet.  A new leader takes the socket over (serve())
// and continues at the exact byte.
//
// Input: a read is a peek and becomes a DATA entry, one at a time.  Once the entry is committed,
// its bytes are dropped from the socket.  An entry ends after an urgent byte and carries its mark;
// the kernel keeps both until the entry is committed.  Proposed input never exceeds the server's
// consumption by more than the receive window, so that a replica's memory per connection is bounded
// (rule 1).
//
// Output: it is sent at once, and queued when the client does not take it.  Queued output keeps its
// urgent mark.  The queue is bounded because the server sees a virtual send buffer of S bytes,
// which only WINDOW entries free (DESIGN D15).
//
// The socket's life: open -> (FIN of the client: input ended) -> (the server shuts down or closes:
// FIN after the queue) -> gone.  The connection's life ends when the server has closed it and the
// queue is out.  If the client vanishes earlier, the connection continues without a socket.
//
// Threads: one object, one thread.
// INVARIANT CONN-1  proposed - consumed <= receive window.
// INVARIANT CONN-2  put <= written; put >= window_proposed_, except for a connection that has
//                   moved: an earlier leader had put more into a socket that is lost.
// INVARIANT CONN-3  SHUTDOWN at most once, RESET at most once per reign, nothing after RESET.
// INVARIANT CONN-4  No byte leaves the socket before its DATA is committed, and each leaves once.
// INVARIANT CONN-5  A byte is written to the socket at most once, by any replica.

#include <cstddef>
#include <cstdint>
#include <span>

#include "proxy/replica/clients/batch.h"
#include "proxy/replica/clients/client_socket.h"
#include "proxy/replica/clients/output_tail.h"

namespace crane::proxy {

struct ConnectionOptions {
  std::uint64_t send_buffer = 1U << 20;  // S, the same as in the server's configuration
  std::uint64_t receive_window = 256 * 1024;
  std::uint64_t first_window = 32 * 1024;  // until the server has read something
};

// A connection as a recovering replica finds it in its server's state.
struct ConnectionProgress {
  std::uint64_t received = 0, consumed = 0, written = 0, window = 0;
  std::uint64_t taken = 0;  // bytes of output that the client has acknowledged
  bool fin_received = false, reset = false, shut_write = false;
};

class Connection : public Opener {
 public:
  // A client that this replica has accepted and serves.
  Connection(ClientSocket socket, std::uint16_t port, const ConnectionOptions& options) noexcept
      : options_(&options), socket_(std::move(socket)), port_(port), serves_(true) {}
  // Another replica's client: keeps what the log and this replica's server report.
  Connection(std::uint16_t port, const ConnectionOptions& options) noexcept
      : options_(&options), port_(port) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const ClientSocket& socket() const noexcept { return socket_; }
  // -1: the socket is gone, or belongs to another replica.
  int fd() const noexcept { return socket_.fd(); }
  std::uint16_t port() const noexcept { return port_; }
  bool serves() const noexcept { return serves_; }

  // This replica has opened the connection for its server, and serves it.
  void serve_opened(ClientSocket socket) noexcept;

  // Another host's replica may continue the connection; the kernel of this host keeps nothing that
  // it needs.
  void set_moves() noexcept { moves_ = true; }
  bool moves() const noexcept { return moves_; }

  // --- from the log, on every replica
  void committed_data(std::uint64_t bytes) noexcept;
  void committed_shutdown() noexcept;
  void committed_reset() noexcept;
  void committed_window(std::uint64_t total) noexcept;
  // Called before anything else on a recovering replica.
  void restore(const ConnectionProgress& progress);

  // --- from the client, while it serves
  enum class Read : std::uint8_t {
    kSome,      // there may be more
    kDrained,   // nothing more now
    kUnderWay,  // the last read is not committed yet
    kFull,      // the receive window is used up: wait for consumed()
    kEnded,     // FIN or the end of the connection: nothing more will arrive
  };
  Read read(Batch& batch);
  // Takes committed bytes out of the socket.  A few may stay, and the next read skips them, which
  // is cheaper than a system call for each request.  There are two exceptions.  The first bytes are
  // always taken: they were read together with the connection, their event comes later, and usually
  // nothing follows them, which shows only when they are gone.  Bytes that follow others which were
  // taken out are taken too: the kernel keeps the buffer of all until its last byte is taken, and
  // may announce no window.
  void drop_committed() noexcept;
  std::uint64_t window() const noexcept {
    return consumed_ == 0 ? options_->first_window : options_->receive_window;
  }
  bool window_open() const noexcept { return proposed_ - consumed_ < window(); }

  // --- from this replica's server, on every replica
  // The server has read `total` bytes in all.
  void consumed(std::uint64_t total) noexcept;
  // Each returns false if it must continue when the socket is writable.  `at`: position of the
  // bytes. `last`: shut_down() or close() follows at once.
  bool write(std::uint64_t at, Pieces pieces, Batch& batch, bool last = false);
  // write() whose last byte is urgent.
  bool write_urgent(std::uint64_t at, Pieces pieces, Batch& batch);
  bool write(std::uint64_t at, std::span<const std::byte> bytes, Batch& batch) {
    return write(at, Pieces(&bytes, 1), batch);
  }
  bool shut_down(Batch& batch);          // FIN after what was written
  bool close(bool reset, Batch& batch);  // the server's last reference is gone
  bool flush(Batch& batch);              // the socket is writable: continue
  // Output that may not be in the socket yet.
  std::size_t queued() const noexcept { return tail_.size(); }
  // Bytes of the server's output that are known to be in the socket.
  std::uint64_t put() const noexcept { return tail_.from(); }
  // As write(), but puts nothing; flush() does that.
  void keep(std::uint64_t at, Pieces pieces) {
    for (const std::span<const std::byte> piece : pieces) {
      tail_.append(at, piece);
      at += piece.size();
    }
  }
  void keep_urgent(std::uint64_t at, Pieces pieces) {
    keep(at, pieces);
    tail_.note_urgent();
  }
  // While another replica serves: it has put `total` bytes.
  void put_by_other(std::uint64_t total) noexcept { tail_.put(total); }
  bool server_closed() const noexcept { return server_closed_; }
  // The bytes that queued() counts.
  std::span<const std::byte> unput() const noexcept { return tail_.bytes(); }
  // While this replica serves: how many bytes of output the client has acknowledged.
  std::uint64_t acknowledged() const noexcept;
  // The client has acknowledged all output and the server has closed; or the client is gone.  Then
  // drop() may be called.
  bool is_out() const noexcept;
  void drop() noexcept { drop_socket(); }

  // Resets the client now; with `notify` a RESET entry informs the servers.
  void reset(Batch& batch, bool notify);
  // The server has closed and nothing is left to send: the connection can be forgotten.
  bool finished() const noexcept { return server_closed_ && !socket_; }
  // The client has seen a reset, or will see one.
  bool is_reset() const noexcept { return reset_committed_ || closed_hard_; }

  // --- changes of the leader
  enum class Adopted : std::uint8_t {
    kServed,  // the connection continues
    kEnded,   // only the socket was left to close
    kReset,   // it could not continue: the client and the server see a reset
  };
  // REQUIRES: this replica's server has reached the START of this reign; no other process reads or
  // writes the socket.  An empty `socket` means the one that this replica has kept (follow()).
  Adopted serve(ClientSocket socket, Batch& batch);
  // For a connection that moves: the socket was made on this host, after all committed input and at
  // put().  Empty: the connection cannot continue.
  Adopted serve_moved(ClientSocket socket, Batch& batch);
  // This replica no longer serves a moved connection: the client lacks `output`, which was put
  // last.
  void take_back(std::span<const std::byte> output) { tail_.take_back(output); }
  // How many of the client's sequence numbers are used: its bytes and its FIN.
  std::uint64_t received() const noexcept { return committed_ + (fin_committed_ ? 1 : 0); }
  // This replica is deposed: uncommitted proposals are void.  It keeps the socket open, but no
  // longer uses it.
  void follow() noexcept;
  // The socket belongs to another replica now.
  void release_sockets() noexcept { socket_.close(); }
  // Returns the socket and gives it up.
  ClientSocket surrender() noexcept { return std::move(socket_); }

 protected:
  // No more events of the socket are wanted.
  virtual void unwatch() noexcept {}
  // The socket is no longer used; it is closed after unwatch().
  virtual void allow_close(ClientSocket) noexcept {}

 private:
  bool resume(SocketState state) noexcept;
  Peeked peek(std::span<std::byte> room) noexcept;
  void drop_all() noexcept;
  void broken(Batch& batch);
  void report_reset(Batch& batch);
  void drop_socket() noexcept;
  void drop_socket_with_reset() noexcept;
  void propose_window(Batch& batch);
  bool finish_output() noexcept;
  ssize_t send_tail() noexcept;

  const ConnectionOptions* options_;
  ClientSocket socket_;
  std::uint16_t port_;
  bool serves_ = false;

  // The agreed state.
  std::uint64_t committed_ = 0, consumed_ = 0;
  std::uint64_t window_committed_ = 0;
  bool moves_ = false;
  bool fin_committed_ = false, reset_committed_ = false;
  bool fin_wanted_ = false;  // the server shut down writing
  bool server_closed_ = false;
  bool closed_hard_ = false;  // by a reset
  OutputTail tail_;

  // The leader's state; follow() resets it to the agreed one.
  std::uint64_t proposed_ = 0;
  std::uint64_t undropped_ = 0;  // committed, and still in the socket
  bool parted_ = false;  // the socket's bytes may share a buffer with bytes that were taken out
  std::uint64_t window_proposed_ = 0;
  bool input_ended_ = false;     // SHUTDOWN or RESET was proposed, or no input is wanted
  bool reset_proposed_ = false;  // RESET was proposed
  bool fin_sent_ = false;
  bool shared_ = false;  // another process may have the socket open
};

}  // namespace crane::proxy
