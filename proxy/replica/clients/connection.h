// SPDX-License-Identifier: Apache-2.0
#pragma once
// One connection of a client, on every replica: bytes in become entries, the server's bytes go out.
//
// The log and the own server say what is agreed, so that all replicas hold the same: how many bytes
// came in, how many the server has read and written, how it ended.  The leader has the socket as
// well, and serves: it reads and writes.  The kernel keeps what no replica can lose: a byte of the
// client stays in the socket until its DATA is committed, and each replica keeps the output that is
// not known to be in the socket.  A new leader takes the socket over (serve()) and goes on at the
// very byte.
//
// Input: a read is a peek and becomes a DATA entry, one at a time; once it is committed its bytes
// are dropped from the socket.  An entry ends with an urgent byte, whose mark it carries: until it
// is committed the kernel keeps both.  Output that is not put keeps its mark as well.  Never more
// is proposed than the receive window beyond what the server consumed, so that a replica's memory
// per connection is bounded (rule 1).  Output: sent at once, queued when the client does not take
// it; the queue is bounded because the server sees a virtual send buffer of S bytes which only
// WINDOW entries free (DESIGN D15).
//
// The socket's life: open -> (FIN of the client: input ended) -> (the server shuts down or closes:
// FIN after the queue) -> gone.  The connection's life ends when the server closed it and the queue
// is out; a client that vanishes earlier leaves a record without a socket behind.
//
// Threads: one object, one thread.
// INVARIANT CONN-1  proposed - consumed <= receive window.
// INVARIANT CONN-2  put <= written; put = window_proposed_ or more, but for a connection that has
//                   moved: an earlier leader had put more into a socket that is lost.
// INVARIANT CONN-3  SHUTDOWN at most once, RESET at most once per reign, nothing after RESET.
// INVARIANT CONN-4  No byte leaves the socket before its DATA is committed, and each leaves once.
// INVARIANT CONN-5  A byte is written to the socket at most once, by whichever replica.

#include <cstddef>
#include <cstdint>
#include <span>

#include "proxy/replica/clients/batch.h"
#include "proxy/replica/clients/client_socket.h"
#include "proxy/replica/clients/output_tail.h"

namespace crane::proxy {

struct ConnectionOptions {
  std::uint64_t send_buffer = 1U << 20;  // S, the same as the server's configuration has
  std::uint64_t receive_window = 256 * 1024;
  std::uint64_t first_window = 32 * 1024;  // before the server has read anything
};

// A connection as a replica that recovers finds it in its server's state.
struct ConnectionProgress {
  std::uint64_t received = 0, consumed = 0, written = 0, window = 0;
  std::uint64_t taken = 0;  // of the output, acknowledged
  bool fin_received = false, reset = false, shut_write = false;
};

class Connection : public Opener {
 public:
  // A client that this replica has accepted: it serves.
  Connection(ClientSocket socket, std::uint16_t port, const ConnectionOptions& options) noexcept
      : options_(&options), socket_(std::move(socket)), port_(port), serves_(true) {}
  // Another replica's client: what the log and the own server say is kept.
  Connection(std::uint16_t port, const ConnectionOptions& options) noexcept
      : options_(&options), port_(port) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const ClientSocket& socket() const noexcept { return socket_; }
  int fd() const noexcept { return socket_.fd(); }  // -1: the socket is gone, or another replica's
  std::uint16_t port() const noexcept { return port_; }
  bool serves() const noexcept { return serves_; }

  // This replica has opened it for its server: it serves.
  void serve_opened(ClientSocket socket) noexcept;

  // Another host's replica may go on with it: the kernel here keeps nothing that they need.
  void set_moves() noexcept { moves_ = true; }
  bool moves() const noexcept { return moves_; }

  // --- from the log, on every replica
  void committed_data(std::uint64_t bytes) noexcept;
  void committed_shutdown() noexcept;
  void committed_reset() noexcept;
  void committed_window(std::uint64_t total) noexcept;
  // Before anything else, on a replica that recovers.
  void restore(const ConnectionProgress& progress);

  // --- from the client, while it serves
  enum class Read : std::uint8_t {
    kSome,      // more may be there
    kDrained,   // nothing more now
    kUnderWay,  // what was read last is not committed yet
    kFull,      // the receive window is used up: wait for consumed()
    kEnded,     // FIN or the end of the connection: nothing will come any more
  };
  Read read(Batch& batch);
  // Takes what is committed out of the socket.  A little stays: the next read passes over it, which
  // is cheaper than a system call for each request.  Not so the first bytes: their event comes when
  // they were read with the connection, mostly nothing is behind them, and that shows only when
  // they are gone.  Not so behind more that was taken out: the
  // kernel keeps the buffer of all until its last byte is taken, and may announce no window.
  void drop_committed() noexcept;
  std::uint64_t window() const noexcept {
    return consumed_ == 0 ? options_->first_window : options_->receive_window;
  }
  bool window_open() const noexcept { return proposed_ - consumed_ < window(); }

  // --- from the own server, on every replica
  // The server has read `total` bytes in all.
  void consumed(std::uint64_t total) noexcept;
  // Each returns false when the socket wants a write event to go on.  `at`: position of the bytes.
  // `last`: shut_down() or close() follows at once.
  bool write(std::uint64_t at, Pieces pieces, Batch& batch, bool last = false);
  // .. and the last byte is urgent.
  bool write_urgent(std::uint64_t at, Pieces pieces, Batch& batch);
  bool write(std::uint64_t at, std::span<const std::byte> bytes, Batch& batch) {
    return write(at, Pieces(&bytes, 1), batch);
  }
  bool shut_down(Batch& batch);          // FIN behind what was written
  bool close(bool reset, Batch& batch);  // the server's last reference is gone
  bool flush(Batch& batch);              // the socket took something: go on
  // Bytes that are not known to be in the socket.
  std::size_t queued() const noexcept { return tail_.size(); }
  // Of the server's output, those that are known to be in the socket.
  std::uint64_t put() const noexcept { return tail_.from(); }
  // As write(), but none of it is put yet: flush() does that.
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
  // While another replica serves: it has put so many bytes.
  void put_by_other(std::uint64_t total) noexcept { tail_.put(total); }
  bool server_closed() const noexcept { return server_closed_; }
  // .. which are not.
  std::span<const std::byte> unput() const noexcept { return tail_.bytes(); }
  // While it serves: of the output, the client has acknowledged so much.
  std::uint64_t acknowledged() const noexcept;
  // .. all, and the server has closed; or the client is gone.  Then drop() can come.
  bool is_out() const noexcept;
  void drop() noexcept { drop_socket(); }

  // Resets the client now; with `tell` the servers learn of it by a RESET entry.
  void reset(Batch& batch, bool tell);
  // The server has closed and nothing is left to send: the record can go.
  bool finished() const noexcept { return server_closed_ && !socket_; }
  // The client is to see, or has seen, a reset.
  bool is_reset() const noexcept { return reset_committed_ || closed_hard_; }

  // --- changes of the leader
  enum class Adopted : std::uint8_t {
    kServed,  // it goes on
    kEnded,   // there was nothing left to do but to close the socket
    kReset,   // it could not go on: the client sees a reset, as does the server
  };
  // REQUIRES: the own server has come to the START of this reign; no other process reads or writes
  // the socket.  Without a socket, the one that this replica has kept (follow()).
  Adopted serve(ClientSocket socket, Batch& batch);
  // Of a connection that moves: the socket was made here behind all that is committed, and what
  // put() says.  None: it cannot go on.
  Adopted serve_moved(ClientSocket socket, Batch& batch);
  // .. and this replica does not serve it any more: its client lacks what was put last.
  void take_back(std::span<const std::byte> output) { tail_.take_back(output); }
  // The client's sequence numbers that are used up: of its bytes, and of its FIN.
  std::uint64_t received() const noexcept { return committed_ + (fin_committed_ ? 1 : 0); }
  // This replica is deposed: what was proposed and is not committed never was.  It keeps the socket
  // open, and touches it no more.
  void follow() noexcept;
  // The socket is another replica's now.
  void release_sockets() noexcept { socket_.close(); }
  // Its socket, which it has no more.
  ClientSocket surrender() noexcept { return std::move(socket_); }

 protected:
  // Nothing more of the socket is waited for.
  virtual void unwatch() noexcept {}
  // The socket is done with, and closed behind unwatch().
  virtual void let_close(ClientSocket) noexcept {}

 private:
  bool resume(SocketState state) noexcept;
  Peeked peek(std::span<std::byte> room) noexcept;
  void drop_all() noexcept;
  void broken(Batch& batch);
  void tell_reset(Batch& batch);
  void drop_socket() noexcept;
  void drop_socket_with_reset() noexcept;
  void propose_window(Batch& batch);
  bool finish_output() noexcept;
  ssize_t send_tail() noexcept;

  const ConnectionOptions* options_;
  ClientSocket socket_;
  std::uint16_t port_;
  bool serves_ = false;

  // Agreed.
  std::uint64_t committed_ = 0, consumed_ = 0;
  std::uint64_t window_committed_ = 0;
  bool moves_ = false;
  bool fin_committed_ = false, reset_committed_ = false;
  bool fin_wanted_ = false;  // the server shut down writing
  bool server_closed_ = false;
  bool closed_hard_ = false;  // by a reset
  OutputTail tail_;

  // The leader's; follow() sets them back to what is agreed.
  std::uint64_t proposed_ = 0;
  std::uint64_t undropped_ = 0;  // committed, and still in the socket
  bool parted_ = false;  // what is in the socket may share a buffer with what was taken out of it
  std::uint64_t window_proposed_ = 0;
  bool input_ended_ = false;     // SHUTDOWN or RESET was proposed, or no input is wanted
  bool reset_proposed_ = false;  // RESET was proposed
  bool fin_sent_ = false;
  bool shared_ = false;  // another process may have the socket open
};

}  // namespace crane::proxy
