// SPDX-License-Identifier: Apache-2.0
#pragma once
// An authenticated, encrypted, non-blocking byte stream between two replicas of one group.
//
// The idea: all replicas hold the group's secret of 32 bytes, and nothing else: no certificates, no
// clocks.  A link uses TLS 1.3 with an external pre-shared key (RFC 8446, 2.2) and a fresh
// Diffie-Hellman exchange.  The key of a link is HMAC-SHA256(secret, name of the link).  The name
// (dialling replica, accepting replica, plane) is the key's identity, which binds it into the
// handshake:
//
//   INVARIANT LINK-S1  An open link's name() is that of a process that holds the group's secret,
//                 and the accepting side is the replica that the dialler meant.  A stranger can
//                 neither join, read, write, nor replay what it recorded.  A link that was made for
//                 one pair or plane cannot be used as another's.
//   INVARIANT LINK-S2  The pre-shared key is the only way in: no certificate is accepted or sent,
//                 no earlier protocol version is used, no session is resumed, and there is no early
//                 data.
//   INVARIANT LINK-S3  A link has kOperator as its dialler if and only if its plane is
//                 kOperatorPlane.  So an operator's link is never taken for a replica's.
//
// Members trust each other: a process that holds the secret can act as any member.
//
// Output is collected in out(). flush() encrypts and sends all of it in one pass and one send().
// Sockets have TCP_NODELAY, SO_KEEPALIVE, TCP_USER_TIMEOUT and TCP_THIN_LINEAR_TIMEOUTS.
//
// Threads: a link and its context belong to one thread.  Errors: a link fails with a reason; it
// raises no signal and throws no exception.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

namespace crane::consensus {

using GroupSecret = std::array<std::byte, 32>;

// A resolved address.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};
// Numeric addresses resolve at once. Host names need the resolver, which may block: call it only at
// start.
Result<SocketAddress> resolve(const std::string& address, std::uint16_t port) noexcept;
// "10.0.0.1:4000", for messages.
std::string to_text(const SocketAddress& address);
// Non-blocking, SO_REUSEADDR.
Result<int> listen_on(const SocketAddress& address) noexcept;

struct LinkName {
  ReplicaId from{};  // dials
  ReplicaId to{};    // accepts
  std::uint8_t plane = 0;
  friend bool operator==(const LinkName&, const LinkName&) = default;
};

class SecureLink;

// The TLS context that all links of a process share.
class LinkContext {
 public:
  // `self`: this process's replica, or kOperator for a process that only dials.
  static Result<std::unique_ptr<LinkContext>> create(const GroupSecret& secret, ReplicaId self,
                                                     std::uint8_t replicas) noexcept;
  ~LinkContext();
  LinkContext(const LinkContext&) = delete;
  LinkContext& operator=(const LinkContext&) = delete;

 private:
  friend struct LinkCallbacks;
  friend class SecureLink;
  LinkContext() = default;
  // Whether this process may be the other end of a link of that name.
  bool accepts(const LinkName& name) const noexcept;
  GroupSecret secret_{};
  ReplicaId self_{};
  std::uint8_t replicas_ = 0;
  ssl_ctx_st* dialler_ = nullptr;
  ssl_ctx_st* acceptor_ = nullptr;
};

class SecureLink {
 public:
  enum class State : std::uint8_t { kConnecting, kHandshaking, kOpen, kFailed };
  enum class Failure : std::uint8_t {
    kNone,
    kUnreachable,  // no process listens at the address, or the network is cut
    kSecret,       // the other side holds another secret, or none
    kNotMember,    // the other side is not a replica of this group
    kClosed,       // an open link ended
  };

  // Begins to connect.  `user_timeout_ms`: TCP_USER_TIMEOUT.
  static Result<std::unique_ptr<SecureLink>> dial(LinkContext& context, const LinkName& name,
                                                  const SocketAddress& to,
                                                  unsigned user_timeout_ms) noexcept;
  // Takes over the accepted descriptor `fd`.
  static Result<std::unique_ptr<SecureLink>> accept(LinkContext& context, int fd,
                                                    unsigned user_timeout_ms) noexcept;
  ~SecureLink();
  SecureLink(const SecureLink&) = delete;
  SecureLink& operator=(const SecureLink&) = delete;

  int fd() const noexcept { return fd_; }
  State state() const noexcept { return state_; }
  Failure failure() const noexcept { return failure_; }
  // kUnreachable: the errno with which a dialler's connection failed; 0: it was made, and ended.
  int connect_error() const noexcept { return connect_error_; }
  // On the accepting side: valid once the link is open.
  const LinkName& name() const noexcept { return name_; }
  std::string peer_address() const;

  // Continues the connection and the handshake until the socket would block.  Call it when the
  // socket is ready.
  State progress() noexcept;

  // Plain bytes to send; append at the end only.
  std::vector<std::byte>& out() noexcept { return out_; }
  std::size_t unsent() const noexcept { return out_.size() - out_at_ + wire_.size() - wire_at_; }
  // Encrypts and sends what the socket takes.  The rest waits for the socket (wants_write()).
  void flush() noexcept;
  bool wants_write() const noexcept {
    return state_ == State::kConnecting || wire_at_ < wire_.size();
  }

  // A forked child continues to use the link: this process only closes its descriptor, without a
  // shutdown.
  void hand_over() noexcept { handed_over_ = true; }

  // Limits the bytes that wait unsent in the kernel; the rest stays in out().
  void limit_unsent(unsigned bytes) noexcept;
  // TCP_USER_TIMEOUT: how long the network may keep bytes unacknowledged.
  void set_user_timeout(unsigned ms) noexcept;

  // Reads and decrypts at most about `bytes_max` bytes; true when there may be more.  What came
  // before a failure stays in in().  A short read is the last one: the socket is then empty, and
  // becomes readable when more comes.
  bool fill(std::size_t bytes_max) noexcept;
  std::span<const std::byte> in() const noexcept { return {in_.data() + in_at_, in_end_ - in_at_}; }
  void consume(std::size_t bytes) noexcept { in_at_ += bytes; }

 private:
  friend struct LinkCallbacks;
  SecureLink(LinkContext& context, int fd, unsigned user_timeout_ms) noexcept;
  bool begin_tls(ssl_ctx_st* context, bool accepting) noexcept;
  bool finish_connect() noexcept;
  void send_wire() noexcept;
  void fail(Failure why) noexcept;
  void fail_handshake() noexcept;
  void make_room();

  LinkContext& context_;
  int fd_;
  ssl_st* ssl_ = nullptr;
  State state_ = State::kHandshaking;
  Failure failure_ = Failure::kNone;
  int connect_error_ = 0;
  bool accepting_ = false;
  bool ended_ = false;    // the other side closed, or the socket failed
  bool drained_ = false;  // this progress() or fill() had a short read: the socket is empty
  bool handed_over_ = false;
  LinkName name_;
  std::string identity_;        // sent by a dialler
  std::vector<std::byte> out_;  // plain, from out_at_ on
  std::size_t out_at_ = 0;
  std::vector<std::byte> wire_;  // encrypted, from wire_at_ on
  std::size_t wire_at_ = 0;
  std::vector<std::byte> in_;  // decrypted: [in_at_, in_end_)
  std::size_t in_at_ = 0;
  std::size_t in_end_ = 0;
  std::uint64_t passes_ = 0;  // encryption passes, for key updates
};

// Links of this plane do not belong to a fabric.  A replica of the group dials one for something
// other than the log, at the same port and with the same secret.  Any replica may dial any other.
inline constexpr std::uint8_t kVisitPlane = 32;
// Neither do links of this plane: an operator's program, which is no replica, dials one to send a
// request to a node.
inline constexpr std::uint8_t kOperatorPlane = 33;
inline constexpr ReplicaId kOperator{0xff};
inline constexpr bool is_visit(const LinkName& name) noexcept {
  return name.plane == kVisitPlane || name.plane == kOperatorPlane;
}
// Takes such a link once it is open (LINK-S1); without a TakeVisitor these links are refused.  The
// fabric calls it from poll(), so it must be quick.  The first bytes may have arrived with the
// handshake already, and then the socket reports nothing: call fill() once before waiting for it.
// `from`: the replica, or kOperator.
using TakeVisitor = std::function<void(ReplicaId from, std::unique_ptr<SecureLink> link)>;

}  // namespace crane::consensus
