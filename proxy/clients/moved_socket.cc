// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/moved_socket.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proxy/clients/host_sockets.h"

namespace crane::proxy {
namespace {

// Option numbers of the kernel (include/net/tcp.h), as in TCP_REPAIR_OPTIONS.
enum : std::uint32_t { kOptMss = 2, kOptWindow = 3, kOptSack = 4, kOptTimestamp = 8 };
constexpr std::size_t kBufferMost = 512 * 1024;  // the most that the kernel sends as one
constexpr std::uint32_t kPeerWindow = 65535;     // until the client announces its own

template <typename T>
bool set(int fd, int level, int option, const T& value) noexcept {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

template <typename T>
bool get(int fd, int option, T& value) noexcept {
  socklen_t size = sizeof value;
  return ::getsockopt(fd, IPPROTO_TCP, option, &value, &size) == 0;
}

// During its lifetime the kernel sends nothing of the socket, and its numbers can be read and set.
class Repair {
 public:
  explicit Repair(int fd) noexcept : fd_(fd), on_(set<int>(fd, IPPROTO_TCP, TCP_REPAIR, 1)) {}
  ~Repair() {
    if (on_) (void)set<int>(fd_, IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP);
  }
  Repair(const Repair&) = delete;
  Repair& operator=(const Repair&) = delete;
  explicit operator bool() const noexcept { return on_; }

  bool set_sequence(int queue, std::uint32_t number) const noexcept {
    return set(fd_, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue) &&
           set(fd_, IPPROTO_TCP, TCP_QUEUE_SEQ, number);
  }
  // The kernel probes the client.
  bool end() noexcept {
    on_ = false;
    return set<int>(fd_, IPPROTO_TCP, TCP_REPAIR, 0);
  }

 private:
  int fd_;
  bool on_;
};

sockaddr_in address_of(const VirtualAddress& address) noexcept {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(address.port);
  std::memcpy(&a.sin_addr, address.ip, sizeof a.sin_addr);
  return a;
}

bool set_options(int fd, const TcpStart& start) noexcept {
  tcp_repair_opt options[4];
  std::size_t count = 0;
  options[count++] = {kOptMss, start.mss};
  if ((start.options & TCPI_OPT_WSCALE) != 0) {
    const std::uint32_t theirs = start.scales & 15U, ours = start.scales >> 4U;
    options[count++] = {kOptWindow, theirs | ours << 16U};
  }
  if ((start.options & TCPI_OPT_SACK) != 0) options[count++] = {kOptSack, 0};
  if ((start.options & TCPI_OPT_TIMESTAMPS) != 0) options[count++] = {kOptTimestamp, 0};
  return ::setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, options,
                      static_cast<socklen_t>(count * sizeof options[0])) == 0;
}

bool set_window(int fd, std::uint32_t next_received) noexcept {
  tcp_repair_window window{};
  if (!get(fd, TCP_REPAIR_WINDOW, window)) return false;
  window.snd_wl1 = next_received - 1;
  window.snd_wnd = window.max_window = kPeerWindow;
  window.rcv_wup = next_received;
  return set(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, window);
}

// Puts all of `output` into the queue of sent bytes.
bool fill(int fd, std::span<const std::byte> output) noexcept {
  if (output.empty()) return true;
  const int room = static_cast<int>(std::min<std::size_t>(output.size() * 2, 1U << 30));
  int now = 0;
  socklen_t size = sizeof now;
  const bool grows = ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &now, &size) == 0 && now < room &&
                     set(fd, SOL_SOCKET, SO_SNDBUFFORCE, room);
  const int queue = TCP_SEND_QUEUE;
  bool good = set(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue);
  while (good && !output.empty()) {
    const ssize_t took = ::send(fd, output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    good = took > 0;
    if (good) output = output.subspan(static_cast<std::size_t>(took));
  }
  if (grows) (void)set<int>(fd, SOL_SOCKET, SO_BUF_LOCK, 0);  // the kernel adapts the size again
  return good;
}

Error failed(const char* what) { return Error{Code::kSystem, errno, what}; }

}  // namespace

Result<TcpStart> tcp_start_of(const ClientSocket& socket, const Handshake& handshake,
                              std::uint32_t clock) {
  tcp_info info{};
  std::uint32_t timestamp = 0;
  if (!get(socket.fd(), TCP_INFO, info) || !get(socket.fd(), TCP_TIMESTAMP, timestamp)) {
    return failed("read the numbers of a connection");
  }
  TcpStart start{};
  start.sent = handshake.sent;
  start.received = handshake.received;
  start.clock = timestamp - clock;
  start.mss = static_cast<std::uint16_t>(std::min<std::uint32_t>(info.tcpi_snd_mss, 65535));
  start.options = info.tcpi_options & (TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE);
  start.scales = static_cast<std::uint8_t>(info.tcpi_snd_wscale | info.tcpi_rcv_wscale << 4U);
  start.rtt_us = info.tcpi_rtt;
  return start;
}

Result<ClientSocket> make_socket(const SocketMove& move, std::uint32_t clock) {
  ClientSocket socket =
      host_socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed("make a socket");
  const int fd = socket.fd();
  set_stream_options(fd);
  const sockaddr_in local = address_of(move.local), peer = address_of(move.peer);
  const std::uint32_t next = move.start.received + static_cast<std::uint32_t>(move.received);
  Repair repair(fd);
  if (!repair) return failed("repair a socket (CAP_NET_ADMIN)");
  if (!repair.set_sequence(TCP_SEND_QUEUE,
                           move.start.sent + static_cast<std::uint32_t>(move.put)) ||
      !repair.set_sequence(TCP_RECV_QUEUE, next)) {
    return failed("set the numbers of a socket");
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
    return failed("bind a moved socket");
  }
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    return failed("connect a moved socket");
  }
  if (!set_options(fd, move.start) || !set_window(fd, next)) {
    return failed("set the options of a socket");
  }
  // An odd number would select a clock of microseconds.
  const std::uint32_t timestamp = (move.start.clock + clock + 1) & ~1U;
  if ((move.start.options & TCPI_OPT_TIMESTAMPS) != 0 &&
      !set(fd, IPPROTO_TCP, TCP_TIMESTAMP, timestamp)) {
    return failed("set the clock of a socket");
  }
  if (!fill(fd, move.output)) return failed("fill a socket with what was sent");
  if (!repair.end()) return failed("start a socket");
  // The end of the repair has cleared the option.  Without it no process could listen at this port
  // while the socket exists.
  (void)set<int>(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  return socket;
}

void ask_again(const ClientSocket& socket) noexcept {
  Repair repair(socket.fd());
  if (repair) (void)repair.end();
}

std::uint32_t segments_of(const ClientSocket& socket) noexcept {
  tcp_info info{};
  return get(socket.fd(), TCP_INFO, info) ? info.tcpi_segs_in : 0;
}

std::vector<std::byte> leave_silently(ClientSocket socket) {
  std::vector<std::byte> kept;
  const int fd = socket.release();
  int unacknowledged = 0;
  const int queue = TCP_SEND_QUEUE;
  // A socket in repair mode is closed without a packet.
  if (set<int>(fd, IPPROTO_TCP, TCP_REPAIR, 1) && ::ioctl(fd, SIOCOUTQ, &unacknowledged) == 0 &&
      unacknowledged > 0 && set(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)) {
    // The kernel returns whole buffers: the client may have a part of the first one.
    const auto lacks = static_cast<std::size_t>(unacknowledged);
    kept.resize(lacks + kBufferMost);
    const ssize_t got = ::recv(fd, kept.data(), kept.size(), MSG_PEEK | MSG_DONTWAIT);
    kept.resize(std::max<ssize_t>(got, 0));
    if (kept.size() > lacks) kept.erase(kept.begin(), kept.end() - unacknowledged);
  }
  host_socket(fd).close();
  return kept;
}

}  // namespace crane::proxy
