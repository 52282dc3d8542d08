// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's TCP socket, or one to whom the server has connected, as the kernel knows it.  It may
// be open in several processes of the host, so that close() says nothing to the client:
// end_output() and reset() do.
//
// The kernel counts what no process has to remember: how many bytes were taken out of a socket, and
// how many were put into it.  A new leader goes on there.
//
// Threads: one object, one thread.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "dmt/base/ids.h"

namespace crane::proxy {

// Where the two streams of a socket are.  Bytes are counted from the connection's start.
// INVARIANT SOCKET-1  All of it is of one moment, whatever arrives while it is read: else bytes of
//                     the client would be skipped, or bytes of the server be sent twice.
struct SocketState {
  std::uint64_t taken = 0;    // of the client's, read by whichever process
  std::uint64_t put = 0;      // of the server's, written
  bool input_ended = false;   // the client's FIN is there, behind all that it sent
  bool output_ended = false;  // our FIN was put behind the last byte
  // Both directions are done, or the client has reset it.  A FIN, of either side, is counted in
  // `taken` and `put` then.
  bool closed = false;
  bool reset = false;  // .. by the client, and no process has heard of it yet
};

// Bytes that follow each other, and lie apart.
using Pieces = std::span<const std::span<const std::byte>>;
inline constexpr std::size_t kPiecesMost = 16;

// What a look at the client's bytes has shown.
struct Peeked {
  ssize_t bytes;           // as recv() gives it, and errno as it sets it
  bool is_urgent = false;  // the last of them is
  bool more = false;       // more is behind them: on the other side of a mark, or it has just come
};

// What a ClientSocket asks of a kernel: of this host's, or of a simulated one (proxy/sim).  As the
// methods of ClientSocket of the same names.
class SocketCalls {
 public:
  virtual Peeked peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept = 0;
  virtual void drop(int fd, std::uint64_t bytes) noexcept = 0;
  virtual bool holds_any(int fd) noexcept = 0;
  virtual std::uint64_t unacknowledged(int fd) noexcept = 0;
  virtual ssize_t send(int fd, Pieces pieces, bool more) noexcept = 0;
  virtual ssize_t send_urgent(int fd, std::byte byte) noexcept = 0;
  virtual void end_output(int fd) noexcept = 0;
  virtual void reset(int fd) noexcept = 0;  // and leaves the descriptor open
  virtual void close(int fd) noexcept = 0;
  virtual std::optional<SocketState> state(int fd, bool connected_here) noexcept = 0;
  virtual SocketId id(int fd) noexcept = 0;
  virtual std::uint16_t local_port(int fd) noexcept = 0;

 protected:
  ~SocketCalls() = default;
};
class ClientSocket {
 public:
  ClientSocket() = default;
  // Takes over `fd`, a connected non-blocking stream socket of that kernel, which outlives the
  // object.
  ClientSocket(int fd, SocketCalls& calls) noexcept : fd_(fd), calls_(&calls) {}
  ClientSocket(ClientSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), calls_(other.calls_) {}
  ClientSocket& operator=(ClientSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~ClientSocket() { close(); }

  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  // As recv(MSG_PEEK), from behind the first `skip` bytes: all of them stay in the kernel.  The
  // kernel has one mark, the last one: what it shows ends with that byte.  One that is next shows
  // only with `skip` 0, else it is EAGAIN.
  // REQUIRES: skip <= kSkipMost.
  static constexpr std::size_t kSkipMost = 256;
  Peeked peek(std::size_t skip, std::span<std::byte> into) const noexcept {
    return calls_->peek(fd_, skip, into);
  }
  // Takes `bytes` out, which peek() has shown.
  void drop(std::uint64_t bytes) const noexcept { calls_->drop(fd_, bytes); }
  // Whether bytes wait to be read.
  bool holds_any() const noexcept { return calls_->holds_any(fd_); }
  // As send(), of at most kPiecesMost; errno as it sets it.  `more`: end_output() or close()
  // follows at once, and need not be a packet of its own.
  ssize_t send(Pieces pieces, bool more = false) const noexcept {
    return calls_->send(fd_, pieces, more);
  }
  ssize_t send(std::span<const std::byte> bytes, bool more = false) const noexcept {
    return send({&bytes, 1}, more);
  }
  // .. with the client's mark at it.
  ssize_t send_urgent(std::byte byte) const noexcept { return calls_->send_urgent(fd_, byte); }

  // FIN behind what was sent; the client may still send.
  void end_output() const noexcept { calls_->end_output(fd_); }
  // The client sees a reset, whoever else has the socket open; the descriptor stays.
  void abort() const noexcept {
    if (fd_ >= 0) calls_->reset(fd_);
  }
  // .. then as close().
  void reset() noexcept {
    abort();
    close();
  }
  // For this process only.
  void close() noexcept {
    if (fd_ >= 0) calls_->close(std::exchange(fd_, -1));
  }
  // The descriptor stays open, and no object closes it.
  int release() noexcept { return std::exchange(fd_, -1); }

  // Of what was sent, a FIN included, the client has not acknowledged so much.
  std::uint64_t unacknowledged() const noexcept { return calls_->unacknowledged(fd_); }
  // nullopt: it is no TCP socket.  `connected_here`: it was not accepted.
  std::optional<SocketState> state(bool connected_here) const noexcept {
    return calls_->state(fd_, connected_here);
  }
  // The socket's name on this host: the same in all processes that have it open, never another's,
  // also not after the machine was started again.  0: the kernel gives none.
  SocketId id() const noexcept { return calls_->id(fd_); }
  std::uint16_t local_port() const noexcept { return calls_->local_port(fd_); }

 private:
  int fd_ = -1;
  SocketCalls* calls_ = nullptr;
};

}  // namespace crane::proxy
