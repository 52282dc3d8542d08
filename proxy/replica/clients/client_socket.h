// SPDX-License-Identifier: Apache-2.0
#pragma once
// The TCP socket of a client, or of a peer to which the server has connected, as the kernel knows
// it.  Several processes of the host may have it open, so close() has no effect on the client;
// only end_output() and reset() have.
//
// The kernel counts how many bytes were read from the socket and how many were written to it, so no
// process has to remember that.  A new leader continues from these counts.
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

// The positions of a socket's two streams, counted in bytes from the connection's start.
// INVARIANT SOCKET-1  All fields show the same moment, even if bytes arrive while they are read.
//                     Otherwise bytes of the client could be skipped, or bytes of the server sent
//                     twice.
struct SocketState {
  std::uint64_t taken = 0;    // bytes of the client that any process has read
  std::uint64_t put = 0;      // bytes of the server that were written
  bool input_ended = false;   // the client's FIN has arrived, after all that it sent
  bool output_ended = false;  // our FIN was sent after the last byte
  // Both directions have ended, or the client has reset the connection.  Then `taken` and `put`
  // include the FINs.
  bool closed = false;
  bool reset = false;  // the client has reset it, and no process was notified yet
};

// Consecutive bytes that are not contiguous in memory.
using Pieces = std::span<const std::span<const std::byte>>;
inline constexpr std::size_t kPiecesMost = 16;

// The result of peek().
struct Peeked {
  ssize_t bytes;           // the result of recv(); errno is set accordingly
  bool is_urgent = false;  // the last byte is urgent
  bool more = false;       // more bytes follow: after an urgent mark, or just arrived
};

// The kernel's side of ClientSocket: this host's kernel or a simulated one (proxy/sim).  The
// methods are those of ClientSocket with the same names.
class SocketCalls {
 public:
  virtual Peeked peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept = 0;
  virtual void drop(int fd, std::uint64_t bytes) noexcept = 0;
  virtual bool holds_any(int fd) noexcept = 0;
  virtual std::uint64_t unacknowledged(int fd) noexcept = 0;
  virtual ssize_t send(int fd, Pieces pieces, bool more) noexcept = 0;
  virtual ssize_t send_urgent(int fd, std::byte byte) noexcept = 0;
  virtual void end_output(int fd) noexcept = 0;
  virtual void reset(int fd) noexcept = 0;  // the descriptor stays open
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

  // As recv(MSG_PEEK), from after the first `skip` bytes; all bytes stay in the kernel.  The kernel
  // keeps one urgent mark, the last one; the result ends with the marked byte.  If the marked byte
  // is the next one, it is returned only when `skip` is 0; otherwise the call fails with EAGAIN.
  // REQUIRES: skip <= kSkipMost.
  static constexpr std::size_t kSkipMost = 256;
  Peeked peek(std::size_t skip, std::span<std::byte> into) const noexcept {
    return calls_->peek(fd_, skip, into);
  }
  // Removes `bytes` that peek() has returned.
  void drop(std::uint64_t bytes) const noexcept { calls_->drop(fd_, bytes); }
  // Whether bytes wait to be read.
  bool holds_any() const noexcept { return calls_->holds_any(fd_); }
  // As send(), of at most kPiecesMost pieces; sets errno.  `more`: end_output() or close() follows
  // at once, so the FIN needs no packet of its own.
  ssize_t send(Pieces pieces, bool more = false) const noexcept {
    return calls_->send(fd_, pieces, more);
  }
  ssize_t send(std::span<const std::byte> bytes, bool more = false) const noexcept {
    return send({&bytes, 1}, more);
  }
  // Sends one byte with the urgent mark.
  ssize_t send_urgent(std::byte byte) const noexcept { return calls_->send_urgent(fd_, byte); }

  // Sends FIN after what was sent; the client may still send.
  void end_output() const noexcept { calls_->end_output(fd_); }
  // The client sees a reset, even if other processes have the socket open; the descriptor stays
  // open.
  void abort() const noexcept {
    if (fd_ >= 0) calls_->reset(fd_);
  }
  // abort(), then close().
  void reset() noexcept {
    abort();
    close();
  }
  // Closes the socket for this process only.
  void close() noexcept {
    if (fd_ >= 0) calls_->close(std::exchange(fd_, -1));
  }
  // The descriptor stays open, and no object closes it.
  int release() noexcept { return std::exchange(fd_, -1); }

  // How much of what was sent, including a FIN, the client has not acknowledged.
  std::uint64_t unacknowledged() const noexcept { return calls_->unacknowledged(fd_); }
  // nullopt: this is no TCP socket.  `connected_here` is true if this host made the connection, not
  // the client.
  std::optional<SocketState> state(bool connected_here) const noexcept {
    return calls_->state(fd_, connected_here);
  }
  // The socket's name on this host.  It is the same in all processes that have the socket open, and
  // is never reused, even after a reboot.  0: the kernel provides none.
  SocketId id() const noexcept { return calls_->id(fd_); }
  std::uint16_t local_port() const noexcept { return calls_->local_port(fd_); }

 private:
  int fd_ = -1;
  SocketCalls* calls_ = nullptr;
};

}  // namespace crane::proxy
