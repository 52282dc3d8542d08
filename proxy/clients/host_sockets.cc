// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/host_sockets.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "proxy/clients/encode.h"

namespace crane::proxy {
namespace {

// The kernel's state numbers (net/tcp_states.h), as in TCP_INFO.
enum class TcpState : std::uint8_t {
  kEstablished = 1,
  kFinWait1 = 4,
  kFinWait2 = 5,
  kTimeWait = 6,
  kClose = 7,
  kCloseWait = 8,
  kLastAck = 9,
  kClosing = 11,
};

bool has_sent_fin(TcpState state) noexcept {
  return state == TcpState::kFinWait1 || state == TcpState::kFinWait2 ||
         state == TcpState::kTimeWait || state == TcpState::kLastAck || state == TcpState::kClosing;
}

bool has_received_fin(TcpState state) noexcept {
  return state == TcpState::kCloseWait || state == TcpState::kLastAck ||
         state == TcpState::kClosing || state == TcpState::kTimeWait;
}

// Differs after each reboot, when the kernel's socket counter restarts.
std::uint64_t number_of_boot() noexcept {
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[9] = {};  // the first eight digits
  (void)!::read(fd, text, sizeof text - 1);
  ::close(fd);
  return std::strtoull(text, nullptr, 16) << 32;
}

template <typename Get>
VirtualAddress address_of(int fd, Get&& get) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return virtual_address(reinterpret_cast<sockaddr*>(&address), size);
}

class HostSockets final : public SocketCalls {
 public:
  Peeked peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept override;
  void drop(int fd, std::uint64_t bytes) noexcept override;
  bool holds_any(int fd) noexcept override;
  std::uint64_t unacknowledged(int fd) noexcept override;
  ssize_t send(int fd, Pieces pieces, bool more) noexcept override;
  ssize_t send_urgent(int fd, std::byte byte) noexcept override {
    return ::send(fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_OOB);
  }
  void end_output(int fd) noexcept override { ::shutdown(fd, SHUT_WR); }
  void reset(int fd) noexcept override;
  void close(int fd) noexcept override { ::close(fd); }
  std::optional<SocketState> state(int fd, bool connected_here) noexcept override;
  SocketId id(int fd) noexcept override { return socket_id(fd); }
  std::uint16_t local_port(int fd) noexcept override { return local_of(fd).port; }
};

bool is_at_mark(int fd) noexcept {
  int is_at = 0;
  return ::ioctl(fd, SIOCATMARK, &is_at) == 0 && is_at != 0;
}

// The number of bytes in the socket, also after a mark (TCP_INQ); 0: the kernel does not report it.
std::size_t queued_bytes(msghdr& message) noexcept {
  int bytes = 0;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != IPPROTO_TCP || head->cmsg_type != TCP_CM_INQ) return 0;
  std::memcpy(&bytes, CMSG_DATA(head), sizeof bytes);
  return static_cast<std::size_t>(bytes);
}

// Returns the urgent byte if it follows exactly `before` other bytes, more than 0.  The kernel
// returns the byte and its place only while SO_OOBINLINE is off.  If the first byte has the mark,
// this is not used: when another mark arrives meanwhile, the kernel would count that byte as read.
bool add_urgent(int fd, std::size_t before, std::byte& byte) noexcept {
  const auto set_inline = [fd](int on) {
    (void)::setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  };
  const auto is_there = [fd, before] {
    int to_mark = 0;
    return ::ioctl(fd, SIOCINQ, &to_mark) == 0 && to_mark == static_cast<int>(before);
  };
  pollfd special{fd, POLLPRI, 0};
  if (::poll(&special, 1, 0) <= 0 || (special.revents & POLLPRI) == 0) return false;
  if (is_at_mark(fd)) return false;
  std::byte shown;
  set_inline(0);
  const bool got = is_there() &&
                   ::recv(fd, &shown, sizeof shown, MSG_OOB | MSG_PEEK | MSG_DONTWAIT) == 1 &&
                   is_there();  // no later mark has arrived
  set_inline(1);
  if (got) byte = shown;
  return got;
}

// A mark stops the kernel's read, unless the first byte has it.  Only SIOCATMARK reports a mark,
// and only at the first byte.  It is called after the read: a mark that arrives later is after the
// bytes that were read.
Peeked HostSockets::peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept {
  std::byte skipped[ClientSocket::kSkipMost];
  iovec parts[] = {{skipped, skip}, {into.data(), into.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_PEEK);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return {got};
  const std::size_t queued = queued_bytes(message);
  if (skip == 0 && is_at_mark(fd)) return {1, true, queued > 1};
  const auto shown = static_cast<std::size_t>(got);
  const bool more = queued > shown;
  const auto behind = got - static_cast<ssize_t>(skip);
  if (behind > 0 && more && shown < skip + into.size() &&
      add_urgent(fd, shown, into[static_cast<std::size_t>(behind)])) {
    return {behind + 1, true, queued > shown + 1};
  }
  if (behind > 0) return {behind, false, more};
  errno = EAGAIN;  // or there is a FIN, which shows only when all bytes before it were taken
  return {-1};
}

void HostSockets::drop(int fd, std::uint64_t bytes) noexcept {
  while (bytes > 0) {
    // With MSG_TRUNC, TCP copies nothing.  Other stream sockets, in tests, need the room.
    std::byte unread[4096];
    constexpr std::uint64_t kMost = 1U << 30;
    ssize_t got = ::recv(fd, nullptr, std::min(bytes, kMost), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EFAULT) {
      got = ::recv(fd, unread, std::min<std::uint64_t>(bytes, sizeof unread), MSG_DONTWAIT);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;  // the client has reset the connection
    bytes -= static_cast<std::uint64_t>(got);
  }
}

bool HostSockets::holds_any(int fd) noexcept {
  int unread = 0;
  return ::ioctl(fd, SIOCINQ, &unread) == 0 && unread > 0;
}

ssize_t HostSockets::send(int fd, Pieces pieces, bool more) noexcept {
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  if (pieces.size() == 1) return ::send(fd, pieces[0].data(), pieces[0].size(), flags);
  iovec parts[kPiecesMost];
  msghdr message{};
  message.msg_iov = parts;
  for (const std::span<const std::byte> piece :
       pieces.first(std::min(pieces.size(), kPiecesMost))) {
    parts[message.msg_iovlen++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  }
  return ::sendmsg(fd, &message, flags);
}

void HostSockets::reset(int fd) noexcept {
  // close() resets the client only if no other process has the socket open.
  const linger now{1, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  // A unix socket has no reset; its peer reads the end.
  if (::connect(fd, &nowhere, sizeof nowhere) != 0) ::shutdown(fd, SHUT_RDWR);
}

std::uint64_t HostSockets::unacknowledged(int fd) noexcept {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

// The kernel's counts of a socket, read by several calls.
struct SocketCounts {
  tcp_info info{};
  int unread = 0, unacknowledged = 0;
};

bool read_info(int fd, tcp_info& info) noexcept {
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
}

// SOCKET-1: bytes that arrive between two calls change one of the compared numbers.  The loop ends,
// because only this process reads and writes the socket: what can still arrive is bounded by what
// was put, and by the client's window.
bool read_counts(int fd, SocketCounts& counts) noexcept {
  tcp_info before{};
  if (!read_info(fd, counts.info)) return false;
  do {
    before = counts.info;
    if (::ioctl(fd, SIOCINQ, &counts.unread) != 0 ||
        ::ioctl(fd, SIOCOUTQ, &counts.unacknowledged) != 0 || !read_info(fd, counts.info)) {
      return false;
    }
  } while (counts.info.tcpi_bytes_received != before.tcpi_bytes_received ||
           counts.info.tcpi_bytes_acked != before.tcpi_bytes_acked ||
           counts.info.tcpi_state != before.tcpi_state);
  return true;
}

std::optional<SocketState> HostSockets::state(int fd, bool connected_here) noexcept {
  SocketCounts counts;
  if (!read_counts(fd, counts)) return std::nullopt;
  const auto& [info, unread, unacknowledged] = counts;
  SocketState s;
  const auto tcp = static_cast<TcpState>(info.tcpi_state);
  s.closed = tcp == TcpState::kClose;
  s.input_ended = has_received_fin(tcp);
  s.output_ended = has_sent_fin(tcp);
  // A FIN counts as a byte in either direction; SIOCINQ does not count it.
  s.taken = info.tcpi_bytes_received - (s.input_ended ? 1 : 0) - static_cast<std::uint64_t>(unread);
  s.put =
      info.tcpi_bytes_acked + static_cast<std::uint64_t>(unacknowledged) - (s.output_ended ? 1 : 0);
  // The answer to our SYN acknowledges it as a byte.
  if (connected_here) s.put -= std::min<std::uint64_t>(s.put, 1);
  if (s.closed) {
    pollfd errors{fd, 0, 0};  // SO_ERROR would take the error out
    s.reset = ::poll(&errors, 1, 0) > 0 && (errors.revents & POLLERR) != 0;
  }
  return s;
}

}  // namespace

SocketCalls& host_sockets() noexcept {
  static constinit HostSockets calls;
  return calls;
}

ClientSocket host_socket(int fd) noexcept { return {fd, host_sockets()}; }

VirtualAddress peer_of(int fd) noexcept { return address_of(fd, ::getpeername); }
VirtualAddress local_of(int fd) noexcept { return address_of(fd, ::getsockname); }

void set_stream_options(int fd) noexcept {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
}

int accept_client(int fd, VirtualAddress& peer) noexcept {
  int client = -1;
  peer = address_of(fd, [&client](int at, sockaddr* address, socklen_t* size) {
    client = ::accept4(at, address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return client < 0 ? -1 : 0;
  });
  return client;
}

SocketId socket_id(int fd) noexcept {
  static const std::uint64_t boot = number_of_boot();
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return SocketId{0};
  return SocketId{boot + cookie};
}

}  // namespace crane::proxy
