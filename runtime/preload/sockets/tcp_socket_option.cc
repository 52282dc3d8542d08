// SPDX-License-Identifier: Apache-2.0
// Options of virtual sockets are stored or constant; the host's values are never used (DESIGN D15).
// They are kept in the process' own memory, by file and generation: fork copies them, accept
// inherits them, and exec resets them to the defaults.
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>

#include "dmt/urgent.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/unix_socket.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::tcp_socket {
namespace {

struct Known {
  int level, option, initial;
};
// Integer options that are stored and returned; the index is their place in Options::values. An
// option is missing if Crane does not implement it but the server could see its effect. It gets
// ENOPROTOOPT, as on a kernel without it: SO_ZEROCOPY (no completions are sent), SO_RXQ_OVFL,
// TCP_SAVE_SYN, SO_ATTACH_FILTER.
constexpr Known kKnown[] = {
    // Implemented in this file, in bind, in poll and in UDP's control messages (udp_socket.cc).
    {SOL_SOCKET, SO_REUSEADDR, 0},
    {SOL_SOCKET, SO_REUSEPORT, 0},
    {SOL_SOCKET, SO_OOBINLINE, 0},
    {SOL_SOCKET, SO_BROADCAST, 0},
    {SOL_SOCKET, SO_TIMESTAMP, 0},
    {SOL_SOCKET, SO_TIMESTAMPNS, 0},
    {IPPROTO_IPV6, IPV6_V6ONLY, 0},
    {IPPROTO_IPV6, IPV6_RECVPKTINFO, 0},
    {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 0},
    {IPPROTO_IPV6, IPV6_RECVTCLASS, 0},
    {IPPROTO_IPV6, IPV6_TCLASS, 0},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, 64},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1},
    {IPPROTO_IP, IP_TOS, 0},
    {IPPROTO_IP, IP_TTL, 64},
    {IPPROTO_IP, IP_PKTINFO, 0},
    {IPPROTO_IP, IP_RECVTTL, 0},
    {IPPROTO_IP, IP_RECVTOS, 0},
    {IPPROTO_IP, IP_MULTICAST_LOOP, 1},
    {IPPROTO_IP, IP_FREEBIND, 0},
    {IPPROTO_IP, IP_TRANSPARENT, 0},
    {IPPROTO_IPV6, IPV6_FREEBIND, 0},
    {IPPROTO_IPV6, IPV6_TRANSPARENT, 0},
    // How bytes become packets, and when packets are sent again: the stream is the same. The
    // leader's own socket keeps its kernel's defaults.
    {IPPROTO_TCP, TCP_NODELAY, 0},
    {IPPROTO_TCP, TCP_CORK, 0},
    {IPPROTO_TCP, TCP_MAXSEG, 1448},
    {IPPROTO_TCP, TCP_QUICKACK, 1},
    {IPPROTO_TCP, TCP_SYNCNT, 6},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP, 0},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0},
    {IPPROTO_TCP, TCP_FASTOPEN, 0},
    {SOL_SOCKET, SO_PRIORITY, 0},
    {SOL_SOCKET, SO_MARK, 0},
    {SOL_SOCKET, SO_BUSY_POLL, 0},
    {SOL_SOCKET, SO_INCOMING_CPU, 0},
    {SOL_SOCKET, SO_DONTROUTE, 0},
    // The sizes of buffers are hints; ours are equal for all sockets.
    {SOL_SOCKET, SO_SNDBUF, 87040},
    {SOL_SOCKET, SO_RCVBUF, 131072},
    // How soon a silent peer is given up. The leader detects a lost client.
    {SOL_SOCKET, SO_KEEPALIVE, 0},
    {IPPROTO_TCP, TCP_KEEPIDLE, 7200},
    {IPPROTO_TCP, TCP_KEEPINTVL, 75},
    {IPPROTO_TCP, TCP_KEEPCNT, 9},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 0},
    {IPPROTO_TCP, TCP_LINGER2, 60},
    // A connection may be accepted before it has bytes, because the option's time may have passed.
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, 0},
    // A port is chosen at once; ports never run short.
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 0},
    // TCP reports its errors in any case; UDP refuses these options (udp_socket.cc).
    {IPPROTO_IP, IP_RECVERR, 0},
    {IPPROTO_IPV6, IPV6_RECVERR, 0},
    // Paths between own sockets carry any size, and no datagram leaves the server.
    {IPPROTO_IP, IP_MTU_DISCOVER, 1},
    {IPPROTO_IPV6, IPV6_MTU_DISCOVER, 1},
    {IPPROTO_IP, IP_MULTICAST_TTL, 1},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1},
    {IPPROTO_IP, IP_MULTICAST_IF, 0},
    {IPPROTO_IPV6, IPV6_MULTICAST_IF, 0},
    {IPPROTO_IP, IP_MULTICAST_ALL, 1},
};
constexpr std::size_t kKnownCount = sizeof kKnown / sizeof kKnown[0];

struct Options {
  std::uint32_t generation;  // of the file; for another one the initial options hold
  struct linger linger;
  std::int64_t receive_timeout_ns, send_timeout_ns;
  std::uint32_t low_water;   // SO_RCVLOWAT where the file does not store it, 0 = not set
  char device[IF_NAMESIZE];  // SO_BINDTODEVICE
  bool is_reno;              // TCP_CONGESTION: which of the two algorithms that each kernel has
  int values[kKnownCount];
};
Options table[dmt::kFilesMax];

constexpr Options kInitial = [] {
  Options o{};
  for (std::size_t i = 0; i < kKnownCount; ++i) o.values[i] = kKnown[i].initial;
  return o;
}();

// Returns the initial options if none was set.
const Options& options_of(std::uint32_t file) noexcept {
  const Options& o = table[file];
  return o.generation == without_turn().files[file].generation ? o : kInitial;
}

Options& own_options_of(std::uint32_t file) noexcept {
  Options& o = table[file];
  const std::uint32_t generation = without_turn().files[file].generation;
  if (o.generation != generation) {
    o = kInitial;
    o.generation = generation;
  }
  return o;
}

constexpr std::size_t kUnknown = kKnownCount;
std::size_t find(int level, int option) noexcept {
  std::size_t i = 0;
  while (i < kKnownCount && (kKnown[i].level != level || kKnown[i].option != option)) ++i;
  return i;
}

int give(const void* from, std::size_t length, void* value, socklen_t* size) noexcept {
  const std::size_t n = std::min<std::size_t>(*size, length);
  std::memcpy(value, from, n);
  *size = static_cast<socklen_t>(n);
  return 0;
}
int copy_int(int number, void* value, socklen_t* size) noexcept {
  return give(&number, sizeof number, value, size);
}
int copy_time(std::int64_t ns, void* value, socklen_t* size) noexcept {
  const struct timeval t = to_timeval(ns);
  return give(&t, sizeof t, value, size);
}

int take_error(dmt::Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  if (f.kind == FileKind::kSocket || f.kind == FileKind::kUnixSocket) {
    return take_connect_error(w, file);
  }
  if (f.kind != FileKind::kConnection) return 0;
  const int error = f.connection.socket_error;
  f.connection.socket_error = 0;
  if (error != 0) dmt::refresh_readiness(w, file, false);
  return error;
}

int copy_tcp_info(const FileRecord& f, void* value, socklen_t* size) noexcept {
  struct tcp_info info;
  std::memset(&info, 0, sizeof info);
  info.tcpi_state = f.kind == FileKind::kListener                           ? TCP_LISTEN
                    : f.kind != FileKind::kConnection || f.connection.reset ? TCP_CLOSE
                    : f.connection.connecting                               ? TCP_SYN_SENT
                    : f.connection.fin_received && !f.connection.shut_write ? TCP_CLOSE_WAIT
                                                                            : TCP_ESTABLISHED;
  info.tcpi_snd_mss = info.tcpi_rcv_mss = info.tcpi_advmss = 1448;
  info.tcpi_pmtu = 1500;
  info.tcpi_rto = 200'000;
  info.tcpi_rtt = 1000;
  info.tcpi_rttvar = 500;
  info.tcpi_snd_cwnd = 10;
  return give(&info, sizeof info, value, size);
}

constexpr std::size_t kCongestionBytes = 16;
constexpr char kCongestion[2][kCongestionBytes] = {"cubic", "reno"};

int set_congestion(Options& o, const void* value, socklen_t size) noexcept {
  if (size < 1) return -EINVAL;
  char name[kCongestionBytes] = {};
  std::memcpy(name, value, std::min<std::size_t>(size, sizeof name - 1));
  for (const bool is_reno : {false, true}) {
    if (std::strcmp(name, kCongestion[is_reno ? 1 : 0]) != 0) continue;
    o.is_reno = is_reno;
    return 0;
  }
  return -ENOENT;
}

int copy_device(const Options& o, void* value, socklen_t* size) noexcept {
  const std::size_t length = o.device[0] == '\0' ? 0 : std::strlen(o.device) + 1;
  if (*size < length) return -EINVAL;
  return give(o.device, length, value, size);
}

// Gets the other options of this layer; -ENOPROTOOPT for unknown ones.
int get_special(dmt::Layout& w, std::uint32_t file, int level, int option, void* value,
                socklen_t* size) noexcept {
  const FileRecord& f = w.files[file];
  const Options& o = options_of(file);
  if (level == IPPROTO_TCP && option == TCP_INFO) return copy_tcp_info(f, value, size);
  if (level == IPPROTO_TCP && option == TCP_CONGESTION) {
    return give(kCongestion[o.is_reno ? 1 : 0], kCongestionBytes, value, size);
  }
  if (level != SOL_SOCKET) return -ENOPROTOOPT;
  switch (option) {
    case SO_ERROR:
      return copy_int(take_error(w, file), value, size);
    case SO_TYPE:
      return copy_int(SOCK_STREAM, value, size);
    case SO_DOMAIN:
      return copy_int(f.port, value, size);
    case SO_PROTOCOL:
      return copy_int(unix_socket::is_to_host(f) ? 0 : IPPROTO_TCP, value, size);
    case SO_ACCEPTCONN:
      return copy_int(f.kind == FileKind::kListener ? 1 : 0, value, size);
    case SO_RCVLOWAT:
      return copy_int(static_cast<int>(f.kind == FileKind::kConnection ? f.connection.low_water
                                                                       : low_water(file)),
                      value, size);
    case SO_SNDLOWAT:
      return copy_int(1, value, size);
    case SO_LINGER:
      return give(&o.linger, sizeof o.linger, value, size);
    case SO_BINDTODEVICE:
      return copy_device(o, value, size);
    case SO_RCVTIMEO:
      return copy_time(o.receive_timeout_ns, value, size);
    case SO_SNDTIMEO:
      return copy_time(o.send_timeout_ns, value, size);
    default:
      return -ENOPROTOOPT;
  }
}

int set_timeout(std::int64_t& ns, const void* value, socklen_t size) noexcept {
  struct timeval t;
  if (size < sizeof t) return -EINVAL;
  std::memcpy(&t, value, sizeof t);
  if (t.tv_usec < 0 || t.tv_usec >= 1'000'000) return -EDOM;
  ns = t.tv_sec < 0 ? 0 : to_ns({t.tv_sec, t.tv_usec * 1000});
  return 0;
}

int set_device(Options& o, const void* value, socklen_t size) noexcept {
  char name[IF_NAMESIZE] = {};
  std::memcpy(name, value, std::min<std::size_t>(size, sizeof name - 1));
  if (name[0] != '\0' && !interfaces::exists(name)) return -ENODEV;
  std::memcpy(o.device, name, sizeof name);
  return 0;
}

int set_linger(FileRecord& f, Options& o, const void* value, socklen_t size) noexcept {
  if (size < sizeof o.linger) return -EINVAL;
  std::memcpy(&o.linger, value, sizeof o.linger);
  // A linger of 0 seconds makes close() a reset; for longer ones close() has nothing to wait for.
  if (f.kind == FileKind::kConnection) {
    f.connection.linger_reset = o.linger.l_onoff != 0 && o.linger.l_linger == 0;
  }
  return 0;
}

int set_special(Turn& turn, std::uint32_t file, int level, int option, const void* value,
                socklen_t size) noexcept {
  Options& o = own_options_of(file);
  FileRecord& f = turn.w.files[file];
  if (level == IPPROTO_TCP && option == TCP_CONGESTION) return set_congestion(o, value, size);
  if (level != SOL_SOCKET) return -ENOPROTOOPT;
  switch (option) {
    case SO_LINGER:
      return set_linger(f, o, value, size);
    case SO_BINDTODEVICE:
      return set_device(o, value, size);
    case SO_RCVTIMEO:
      return set_timeout(o.receive_timeout_ns, value, size);
    case SO_SNDTIMEO:
      return set_timeout(o.send_timeout_ns, value, size);
    case SO_RCVLOWAT: {
      int bytes = 0;
      if (size < sizeof bytes) return -EINVAL;
      std::memcpy(&bytes, value, sizeof bytes);
      o.low_water = static_cast<std::uint32_t>(std::max(bytes, 1));
      if (f.kind != FileKind::kConnection) return 0;
      f.connection.low_water = std::clamp<std::uint32_t>(
          static_cast<std::uint32_t>(std::max(bytes, 1)), 1, dmt::kReceiveWindow / 2);
      dmt::refresh_readiness(turn.w, file, false);
      return 0;
    }
    case SO_DETACH_FILTER:
      return -ENOENT;
    default:
      return -ENOPROTOOPT;
  }
}

bool is_allowed(int level, int option, int number) noexcept {
  constexpr int kSecondsMost = 32767, kProbesMost = 127;
  if (level != IPPROTO_TCP) return true;
  switch (option) {
    case TCP_KEEPIDLE:
    case TCP_KEEPINTVL:
      return number >= 1 && number <= kSecondsMost;
    case TCP_KEEPCNT:
    case TCP_SYNCNT:
      return number >= 1 && number <= kProbesMost;
    default:
      return true;
  }
}

bool administers_network() noexcept {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (raw_syscall(SYS_capget, &head, data) < 0) return false;
  return (data[0].effective & (1u << CAP_NET_ADMIN)) != 0;
}

bool is_transparent(int level, int option) noexcept {
  return level == IPPROTO_IP ? option == IP_TRANSPARENT
                             : level == IPPROTO_IPV6 && option == IPV6_TRANSPARENT;
}

bool is_bound(const dmt::Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  if (f.kind == FileKind::kDatagram) return f.datagram.bound.family != 0;
  return f.kind != FileKind::kSocket || f.listener.bound.family != 0;
}

// Refuses options of a socket to the host: it has one level, and its peer differs between hosts.
int refuse_to_host(std::uint32_t file, int level, int option) noexcept {
  if (!unix_socket::is_to_host(without_turn().files[file])) return 0;
  if (level != SOL_SOCKET) return -EOPNOTSUPP;
  const bool of_peer = option == SO_PEERCRED || option == SO_PASSCRED || option == SO_PEERSEC ||
                       option == SO_PEERGROUPS || option == SO_PASSSEC;
  return of_peer ? unix_socket::refuse_credentials() : 0;
}

}  // namespace

int get_option(dmt::Layout& w, std::uint32_t file, int level, int option, void* value,
               socklen_t* size) noexcept {
  if (value == nullptr || size == nullptr) return -EFAULT;
  if (const int error = refuse_to_host(file, level, option); error < 0) return error;
  const std::size_t known = find(level, option);
  if (known != kUnknown) return copy_int(options_of(file).values[known], value, size);
  return get_special(w, file, level, option, value, size);
}

int option_of(std::uint32_t file, int level, int option) noexcept {
  return options_of(file).values[find(level, option)];
}

int set_option(Turn& turn, std::uint32_t file, int level, int option, const void* value,
               socklen_t size) noexcept {
  if (value == nullptr && size > 0) return -EFAULT;
  if (const int error = refuse_to_host(file, level, option); error < 0) return error;
  if (level == SOL_SOCKET && (option == SO_SNDBUFFORCE || option == SO_RCVBUFFORCE)) {
    if (!administers_network()) return -EPERM;
    option = option == SO_SNDBUFFORCE ? SO_SNDBUF : SO_RCVBUF;
  }
  const std::size_t known = find(level, option);
  if (known == kUnknown) return set_special(turn, file, level, option, value, size);
  int number = 0;
  // The kernel accepts a single byte for IPv4 options only.
  if (size < (level == IPPROTO_IP ? 1 : sizeof number)) return -EINVAL;
  std::memcpy(&number, value, std::min<std::size_t>(size, sizeof number));
  if (!is_allowed(level, option, number)) return -EINVAL;
  if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY && is_bound(turn.w, file)) return -EINVAL;
  if (is_transparent(level, option) && number != 0 && !administers_network()) return -EPERM;
  const bool is_buffer = level == SOL_SOCKET && (option == SO_SNDBUF || option == SO_RCVBUF);
  // Linux doubles the sizes for its bookkeeping and shows the double.
  own_options_of(file).values[known] = is_buffer ? std::clamp(number, 2304, 1 << 24) * 2 : number;
  if (level == SOL_SOCKET && option == SO_OOBINLINE) apply_urgent_inline(turn.w, file);
  return 0;
}

void inherit_options(dmt::Layout& w, std::uint32_t listener, std::uint32_t connection) noexcept {
  if (&options_of(listener) == &kInitial) return;
  Options& o = own_options_of(connection);
  const std::uint32_t generation = o.generation;
  o = options_of(listener);
  o.generation = generation;
  apply_linger(w, connection);
  apply_urgent_inline(w, connection);
}

void apply_linger(dmt::Layout& w, std::uint32_t file) noexcept {
  const struct linger& l = options_of(file).linger;
  w.files[file].connection.linger_reset = l.l_onoff != 0 && l.l_linger == 0;
}

void apply_urgent_inline(dmt::Layout& w, std::uint32_t file) noexcept {
  if (w.files[file].kind != FileKind::kConnection) return;
  const bool on = options_of(file).values[find(SOL_SOCKET, SO_OOBINLINE)] != 0;
  dmt::set_urgent_inline(w, file, on);
}

std::int64_t receive_timeout(std::uint32_t file) noexcept {
  return options_of(file).receive_timeout_ns;
}
std::int64_t send_timeout(std::uint32_t file) noexcept { return options_of(file).send_timeout_ns; }
std::uint32_t low_water(std::uint32_t file) noexcept {
  return std::max(options_of(file).low_water, 1u);
}
bool reuses_port(std::uint32_t file) noexcept {
  return options_of(file).values[find(SOL_SOCKET, SO_REUSEPORT)] != 0;
}
bool binds_anywhere(std::uint32_t file) noexcept {
  constexpr Known kLift[] = {{IPPROTO_IP, IP_FREEBIND, 0},
                             {IPPROTO_IP, IP_TRANSPARENT, 0},
                             {IPPROTO_IPV6, IPV6_FREEBIND, 0},
                             {IPPROTO_IPV6, IPV6_TRANSPARENT, 0}};
  const Options& o = options_of(file);
  for (const Known& k : kLift) {
    if (o.values[find(k.level, k.option)] != 0) return true;
  }
  return false;
}
bool is_of_loopback(std::uint32_t file) noexcept {
  return std::strcmp(options_of(file).device, "lo") == 0;
}
bool is_only_ipv6(std::uint32_t file) noexcept {
  return options_of(file).values[find(IPPROTO_IPV6, IPV6_V6ONLY)] != 0;
}

}  // namespace crane::tcp_socket
