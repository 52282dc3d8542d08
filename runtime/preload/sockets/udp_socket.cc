// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/udp_socket.h"

#include <netinet/in.h>

#include <algorithm>

#include "dmt/base/bound.h"
#include "dmt/base/log.h"
#include "dmt/connections.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/unreachable.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::udp_socket {
namespace {

constexpr int kTypeFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

dmt::DatagramState& state(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].datagram;
}

// Converts an address of the segment to the form that a socket of `domain` shows (DMT-U2).
VirtualAddress shown(VirtualAddress a, int domain) noexcept {
  if (domain == AF_INET6) {
    addresses::map_to_ipv6(a);
    a.family = AF_INET6;
  }
  return a;
}

// Converts an address; fails if a socket of `f`'s family cannot use it.
int address_for(const FileRecord& f, const struct sockaddr* a, socklen_t n,
                VirtualAddress& out) noexcept {
  const int error = addresses::from_sockaddr(a, n, out, f.port);
  if (error < 0) return error;
  if (out.family != f.port) return -EAFNOSUPPORT;
  addresses::unmap(out);
  return f.port == AF_INET6 && out.family == AF_INET && f.datagram.only_v6 ? -ENETUNREACH : 0;
}

// Binds a socket that sends before it is bound.
int bind_to_any(dmt::Layout& w, std::uint32_t file) noexcept {
  dmt::DatagramState& d = state(w, file);
  if (d.bound.family != 0) return 0;
  const std::uint16_t port = dmt::free_datagram_port(w);
  if (port == 0) return -EAGAIN;
  d.bound.family = w.files[file].port;
  d.bound.port = port;
  return 0;
}

// The source address of the datagram.
VirtualAddress source(const dmt::DatagramState& d, const VirtualAddress& to) noexcept {
  VirtualAddress from = is_wildcard(d.bound) ? interfaces::source_for(to) : d.bound;
  from.port = d.bound.port;
  return from;
}

int take_error(dmt::Layout& w, std::uint32_t file) noexcept {
  const int error = state(w, file).error;
  if (error == 0) return 0;
  state(w, file).error = 0;
  dmt::refresh_readiness(w, file, false);
  return error;
}

bool loops_back(std::uint32_t file, const VirtualAddress& to) noexcept {
  return to.family == AF_INET ? tcp_socket::option_of(file, IPPROTO_IP, IP_MULTICAST_LOOP) != 0
                              : tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_MULTICAST_LOOP) != 0;
}

// The values that control messages set for one datagram.
struct Chosen {
  VirtualAddress from{};        // family 0: not set
  int hops = -1, service = -1;  // -1: the socket's value
};

// The header of a datagram: source, destination, and the sender's settings.
dmt::DatagramHeader header_of(dmt::Layout& w, std::uint32_t file, const VirtualAddress& to,
                              const Chosen& chosen, std::size_t size) noexcept {
  const bool v6 = w.files[file].port == AF_INET6;
  dmt::DatagramHeader header{};
  header.from = source(state(w, file), to);
  if (chosen.from.family != 0) {
    const std::uint16_t port = header.from.port;
    header.from = chosen.from;
    header.from.port = port;
  }
  header.to = to;
  header.size = static_cast<std::uint32_t>(size);
  header.hops =
      static_cast<std::uint8_t>(v6 ? tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_UNICAST_HOPS)
                                   : tcp_socket::option_of(file, IPPROTO_IP, IP_TTL));
  header.service =
      static_cast<std::uint8_t>(v6 ? tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_TCLASS)
                                   : tcp_socket::option_of(file, IPPROTO_IP, IP_TOS));
  if (chosen.hops >= 0) header.hops = static_cast<std::uint8_t>(chosen.hops);
  if (chosen.service >= 0) header.service = static_cast<std::uint8_t>(chosen.service);
  return header;
}

// Reports an error to a connected socket, as an ICMP message would, so that a resolver client tries
// its next server at once.
void report_refused(dmt::Layout& w, std::uint32_t file) noexcept {
  if (state(w, file).peer.family == 0) return;
  state(w, file).error = ECONNREFUSED;
  dmt::refresh_readiness(w, file, true);
}

// Delivers the datagram. 0 or a negative error number.
int deliver(Turn& turn, std::uint32_t file, const VirtualAddress& to, const Chosen& chosen,
            const Buffers& b) noexcept {
  const dmt::DatagramHeader header = header_of(turn.w, file, to, chosen, b.total);
  if (interfaces::is_own(to)) {
    const std::uint32_t target = dmt::find_datagram_socket(turn.w, to, header.from);
    if (target != 0) {
      dmt::put_datagram(turn.w, target, header, b.vectors);
    } else {
      report_refused(turn.w, file);
    }
    return 0;
  }
  unreachable::name(unreachable::What::kDatagram, to);
  if (interfaces::is_multicast(to)) {
    for (std::uint32_t i = 1; loops_back(file, to) && i <= turn.w.scheduler.files_used; ++i) {
      if (dmt::is_in_group(turn.w, i, to)) dmt::put_datagram(turn.w, i, header, b.vectors);
    }
    return 0;
  }
  if (to.family == AF_INET6) return -ENETUNREACH;
  if (!interfaces::is_broadcast(to)) report_refused(turn.w, file);
  return 0;
}

// --- control messages ----------------------------------------------------------------------------

// Appends control messages to the caller's buffer; cuts off those that do not fit.
class ControlMessages {
 public:
  explicit ControlMessages(struct msghdr& m) noexcept
      : m_(m), room_(m.msg_control == nullptr ? 0 : m.msg_controllen) {
    m.msg_controllen = 0;
  }
  void add(int level, int type, const void* data, std::size_t size) noexcept {
    const std::size_t used = m_.msg_controllen;
    if (room_ - used < CMSG_LEN(size)) {
      m_.msg_flags |= MSG_CTRUNC;
      return;
    }
    auto* head = reinterpret_cast<struct cmsghdr*>(static_cast<std::byte*>(m_.msg_control) + used);
    head->cmsg_level = level;
    head->cmsg_type = type;
    head->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(head), data, size);
    m_.msg_controllen = std::min<std::size_t>(used + CMSG_SPACE(size), room_);
  }

 private:
  struct msghdr& m_;
  const std::size_t room_;
};

void add_destination(const VirtualAddress& to, std::uint32_t file, ControlMessages& out) noexcept {
  if (to.family == AF_INET && tcp_socket::option_of(file, IPPROTO_IP, IP_PKTINFO) != 0) {
    struct in_pktinfo info {};
    info.ipi_ifindex = interfaces::index_for(to);
    std::memcpy(&info.ipi_addr, to.ip, sizeof info.ipi_addr);
    info.ipi_spec_dst = info.ipi_addr;
    out.add(IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
  if (tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_RECVPKTINFO) != 0) {
    const VirtualAddress six = shown(to, AF_INET6);
    struct in6_pktinfo info {};
    info.ipi6_ifindex = static_cast<unsigned>(interfaces::index_for(to));
    std::memcpy(&info.ipi6_addr, six.ip, sizeof info.ipi6_addr);
    out.add(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  }
}

// Adds the control messages that the socket has enabled.
void add_control_messages(std::uint32_t file, const dmt::DatagramHeader& header,
                          struct msghdr& m) noexcept {
  ControlMessages out(m);
  const std::int64_t now = virtual_wall_now();
  if (tcp_socket::option_of(file, SOL_SOCKET, SO_TIMESTAMPNS) != 0) {
    const struct timespec t = to_timespec(now);
    out.add(SOL_SOCKET, SO_TIMESTAMPNS, &t, sizeof t);
  } else if (tcp_socket::option_of(file, SOL_SOCKET, SO_TIMESTAMP) != 0) {
    const struct timeval t = to_timeval(now);
    out.add(SOL_SOCKET, SO_TIMESTAMP, &t, sizeof t);
  }
  add_destination(header.to, file, out);
  const int hops = header.hops, service = header.service;
  if (header.to.family == AF_INET) {
    if (tcp_socket::option_of(file, IPPROTO_IP, IP_RECVTTL) != 0) {
      out.add(IPPROTO_IP, IP_TTL, &hops, sizeof hops);
    }
    if (tcp_socket::option_of(file, IPPROTO_IP, IP_RECVTOS) != 0) {
      out.add(IPPROTO_IP, IP_TOS, &header.service, sizeof header.service);
    }
    return;
  }
  if (tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_RECVHOPLIMIT) != 0) {
    out.add(IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof hops);
  }
  if (tcp_socket::option_of(file, IPPROTO_IPV6, IPV6_RECVTCLASS) != 0) {
    out.add(IPPROTO_IPV6, IPV6_TCLASS, &service, sizeof service);
  }
}

// Reads the source address that a control message sets (IP_PKTINFO, IPV6_PKTINFO), if any. False:
// the message is not valid.
bool choose_source(const struct cmsghdr* c, VirtualAddress& from) noexcept {
  from = {};
  if (c->cmsg_level == IPPROTO_IP) {
    struct in_pktinfo info;
    if (c->cmsg_len != CMSG_LEN(sizeof info)) return false;
    std::memcpy(&info, CMSG_DATA(c), sizeof info);
    from.family = AF_INET;
    std::memcpy(from.ip, &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
  } else {
    struct in6_pktinfo info;
    if (c->cmsg_len < CMSG_LEN(sizeof info)) return false;
    std::memcpy(&info, CMSG_DATA(c), sizeof info);
    from.family = AF_INET6;
    std::memcpy(from.ip, &info.ipi6_addr, sizeof info.ipi6_addr);
    addresses::unmap(from);
  }
  if (is_wildcard(from) || !interfaces::is_own(from)) from = {};
  return true;
}

// Reads a number from `least` to 255; false: it is not valid.
bool choose_number(const struct cmsghdr* c, int least, int& out) noexcept {
  int value = 0;
  if (c->cmsg_len == CMSG_LEN(1) && c->cmsg_type == IP_TOS) {
    value = *CMSG_DATA(c);
  } else if (c->cmsg_len == CMSG_LEN(sizeof value)) {
    std::memcpy(&value, CMSG_DATA(c), sizeof value);
  } else {
    return false;
  }
  constexpr int kMost = 255;
  if (value < least || value > kMost) return false;
  out = value;
  return true;
}

// Reads all control messages. 0 or a negative error number.
int choose(const struct msghdr& message, Chosen& chosen) noexcept {
  auto& m = const_cast<struct msghdr&>(message);
  if (m.msg_control == nullptr) return 0;
  for (struct cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    bool good = true;
    if (c->cmsg_level == IPPROTO_IP) {
      if (c->cmsg_type == IP_PKTINFO) good = choose_source(c, chosen.from);
      if (c->cmsg_type == IP_TTL) good = choose_number(c, 1, chosen.hops);
      if (c->cmsg_type == IP_TOS) good = choose_number(c, 0, chosen.service);
    } else if (c->cmsg_level == IPPROTO_IPV6) {
      if (c->cmsg_type == IPV6_PKTINFO) good = choose_source(c, chosen.from);
      if (c->cmsg_type == IPV6_HOPLIMIT) good = choose_number(c, -1, chosen.hops);
      if (c->cmsg_type == IPV6_TCLASS) good = choose_number(c, -1, chosen.service);
    }
    if (!good) return -EINVAL;
  }
  return 0;
}

// --- groups --------------------------------------------------------------------------------------

bool is_membership(int level, int option) noexcept {
  if (level == IPPROTO_IP) return option == IP_ADD_MEMBERSHIP || option == IP_DROP_MEMBERSHIP;
  return level == IPPROTO_IPV6 && (option == IPV6_JOIN_GROUP || option == IPV6_LEAVE_GROUP);
}

// Whether the option enables an error queue, which does not exist.
bool is_error_queue(int level, int option) noexcept {
  return level == IPPROTO_IP ? option == IP_RECVERR
                             : level == IPPROTO_IPV6 && option == IPV6_RECVERR;
}

int change_membership(dmt::DatagramState& d, int level, int option, const void* value,
                      socklen_t n) noexcept {
  VirtualAddress group{};
  group.family = level == IPPROTO_IP ? AF_INET : AF_INET6;
  // Both structures begin with the group. The interface is ignored, because there is only one.
  const std::size_t size = level == IPPROTO_IP ? 4 : 16;
  if (n < (level == IPPROTO_IP ? sizeof(struct ip_mreq) : sizeof(struct ipv6_mreq))) {
    return -EINVAL;
  }
  std::memcpy(group.ip, value, size);
  if (!interfaces::is_multicast(group)) return -EINVAL;
  const std::uint32_t name = dmt::group_name(group);
  std::uint32_t* end = d.groups + dmt::kGroupsMax;
  std::uint32_t* at = std::find(d.groups, end, name);
  const bool joins = level == IPPROTO_IP ? option == IP_ADD_MEMBERSHIP : option == IPV6_JOIN_GROUP;
  if (!joins) {
    if (at == end) return -EADDRNOTAVAIL;
    *at = 0;
    return 0;
  }
  if (at != end) return -EADDRINUSE;
  at = std::find(d.groups, end, 0u);
  if (at == end) {
    static constinit Bound bound{dmt::kGroupsMax, "multicast groups of one socket",
                                 "it cannot join another one (ENOBUFS)"};
    bound.count_refusal();
    return -ENOBUFS;
  }
  *at = name;
  return 0;
}

// As Linux: an address that the program did not choose is dropped together with the peer.
void disconnect(FileRecord& f) noexcept {
  dmt::DatagramState& d = f.datagram;
  d.peer = {};
  if (d.chose_address) return;
  const std::uint16_t port = d.bound.port;
  d.bound = {};
  if (!d.chose_port) return;
  d.bound.family = f.port;
  d.bound.port = port;
}

}  // namespace

bool is_udp(int type, int protocol) noexcept {
  return (type & ~kTypeFlags) == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP);
}

int create(Turn& turn, int domain, int type) noexcept {
  return new_socket(turn, FileKind::kDatagram, domain, type);
}

int bind(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept {
  dmt::DatagramState& d = state(turn.w, file);
  VirtualAddress address;
  const int error = address_for(turn.w.files[file], a, n, address);
  if (error < 0) return error;
  if (d.bound.family != 0) return -EINVAL;
  if (!is_wildcard(address) && !interfaces::is_own(address) && !interfaces::is_multicast(address) &&
      !interfaces::is_broadcast(address) && !tcp_socket::binds_anywhere(file)) {
    return -EADDRNOTAVAIL;
  }
  d.chose_address = !is_wildcard(address);
  d.chose_port = address.port != 0;
  if (address.port == 0) {
    address.port = dmt::free_datagram_port(turn.w);
    if (address.port == 0) return -EADDRINUSE;
  } else if (dmt::datagram_port_taken(turn.w, file, address)) {
    return -EADDRINUSE;
  }
  d.bound = address;
  if (d.chose_port) unreachable::name(unreachable::What::kPort, address);
  return 0;
}

int connect(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept {
  dmt::DatagramState& d = state(turn.w, file);
  if (a != nullptr && n >= sizeof(sa_family_t) && is_readable(a, n) && a->sa_family == AF_UNSPEC) {
    disconnect(turn.w.files[file]);
    return 0;
  }
  VirtualAddress to;
  int error = address_for(turn.w.files[file], a, n, to);
  if (error < 0) return error;
  interfaces::name_this_host(to);
  if (to.family == AF_INET6 && !interfaces::is_own(to) && !interfaces::is_multicast(to)) {
    return -ENETUNREACH;
  }
  error = bind_to_any(turn.w, file);
  if (error < 0) return error;
  d.bound = source(d, to);
  d.peer = to;
  return 0;
}

int shutdown(Turn& turn, int, std::uint32_t file, int how) noexcept {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  dmt::DatagramState& d = state(turn.w, file);
  if (d.peer.family == 0) return -ENOTCONN;
  if (how != SHUT_WR) d.shut_read = true;
  if (how != SHUT_RD) d.shut_write = true;
  dmt::refresh_readiness(turn.w, file, true);
  return 0;
}

int name(int, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* n) noexcept {
  const FileRecord& f = segment->files[file];
  const VirtualAddress& address = of_peer ? f.datagram.peer : f.datagram.bound;
  if (of_peer && address.family == 0) return -ENOTCONN;
  VirtualAddress out = shown(address, f.port);
  out.family = f.port;
  addresses::to_sockaddr(out, a, n);
  return 0;
}

// --- data ----------------------------------------------------------------------------------------

ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept {
  Buffers b;
  const int bad = make_buffers(m.msg_iov, m.msg_iovlen, b);
  if (bad < 0) return bad;
  if ((flags & MSG_ERRQUEUE) != 0) return -EAGAIN;
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, flags, tcp_socket::receive_timeout(file));
  m.msg_flags = 0;
  while (state(turn.w, file).first == 0) {
    const int pending = take_error(turn.w, file);
    if (pending != 0) return -pending;
    if (state(turn.w, file).shut_read) return 0;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
  const dmt::DatagramHeader header = dmt::first_datagram(turn.w, file);
  Cursor cursor(b);
  std::size_t done = 0;
  while (done < header.size) {
    const Cursor::Piece p = cursor.piece(header.size - done);
    if (p.size == 0) break;
    done += dmt::peek_datagram(turn.w, file, done, p.data, p.size);
    cursor.advance(p.size);
  }
  if (m.msg_name != nullptr) {
    const VirtualAddress from = shown(header.from, turn.w.files[file].port);
    addresses::to_sockaddr(from, static_cast<struct sockaddr*>(m.msg_name), &m.msg_namelen);
  }
  if (done < header.size) m.msg_flags |= MSG_TRUNC;
  add_control_messages(file, header, m);
  if ((flags & MSG_PEEK) == 0) dmt::take_datagram(turn.w, file);
  return static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? header.size : done);
}

ssize_t send(Turn& turn, int, std::uint32_t file, const struct msghdr& m, int flags) noexcept {
  Buffers b;
  int error = make_buffers(m.msg_iov, m.msg_iovlen, b);
  if (error < 0) return error;
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  if (b.total > dmt::kDatagramMax) return -EMSGSIZE;
  dmt::DatagramState& d = state(turn.w, file);
  VirtualAddress to = d.peer;
  if (m.msg_name != nullptr && m.msg_namelen > 0) {
    error = address_for(turn.w.files[file], static_cast<const struct sockaddr*>(m.msg_name),
                        m.msg_namelen, to);
    if (error < 0) return error;
    if (to.port == 0) return -EINVAL;
  }
  if (to.family == 0) return -EDESTADDRREQ;
  if (d.shut_write) {
    if ((flags & MSG_NOSIGNAL) == 0) raise_virtually(turn, SIGPIPE);
    return -EPIPE;
  }
  const int pending = take_error(turn.w, file);
  if (pending != 0) return -pending;
  interfaces::name_this_host(to);
  const bool allowed = tcp_socket::option_of(file, SOL_SOCKET, SO_BROADCAST) != 0;
  if (interfaces::is_broadcast(to) && !allowed) return -EACCES;
  error = bind_to_any(turn.w, file);
  Chosen chosen;
  if (error == 0) error = choose(m, chosen);
  if (error == 0) error = deliver(turn, file, to, chosen, b);
  return error < 0 ? error : static_cast<ssize_t>(b.total);
}

// --- options -------------------------------------------------------------------------------------

int get_option(Turn& turn, int, std::uint32_t file, int level, int option, void* value,
               socklen_t* n) noexcept {
  if (value == nullptr || n == nullptr) return -EFAULT;
  int number;
  if (level == SOL_SOCKET && option == SO_TYPE) {
    number = SOCK_DGRAM;
  } else if (level == SOL_SOCKET && option == SO_PROTOCOL) {
    number = IPPROTO_UDP;
  } else if (level == SOL_SOCKET && option == SO_ERROR) {
    number = take_error(turn.w, file);
  } else if (level == IPPROTO_TCP) {
    return -EOPNOTSUPP;
  } else {
    return tcp_socket::get_option(turn.w, file, level, option, value, n);
  }
  *n = std::min<socklen_t>(*n, sizeof number);
  std::memcpy(value, &number, *n);
  return 0;
}

int set_option(Turn& turn, int, std::uint32_t file, int level, int option, const void* value,
               socklen_t n) noexcept {
  if (value == nullptr && n > 0) return -EFAULT;
  dmt::DatagramState& d = state(turn.w, file);
  if (is_membership(level, option)) return change_membership(d, level, option, value, n);
  if (level == IPPROTO_TCP || is_error_queue(level, option)) return -ENOPROTOOPT;
  const int result = tcp_socket::set_option(turn, file, level, option, value, n);
  int on = 0;
  if (result < 0 || n < sizeof on) return result;
  std::memcpy(&on, value, sizeof on);
  if (level == SOL_SOCKET && (option == SO_REUSEADDR || option == SO_REUSEPORT)) d.reuses = on != 0;
  if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY) d.only_v6 = on != 0;
  return result;
}

}  // namespace crane::udp_socket
