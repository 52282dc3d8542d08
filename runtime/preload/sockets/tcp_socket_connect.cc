// SPDX-License-Identifier: Apache-2.0
// connect() of virtual TCP sockets: to the server's own listeners (dmt/loopback.h), and to other
// hosts (dmt/outbound.h).
#include <algorithm>

#include "dmt/loopback.h"
#include "dmt/outbound.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/unix_socket.h"

namespace crane::tcp_socket {
namespace {

bool is_inbound(const dmt::ConnectionState& c) noexcept {
  return !c.loopback && !is_outbound(c.conn);
}

bool is_unspecified(const struct sockaddr* a, socklen_t size) noexcept {
  return a != nullptr && size >= sizeof a->sa_family && is_readable(a, size) &&
         a->sa_family == AF_UNSPEC;
}

// Converts the destination of connect to the segment's form.
int destination_of(const dmt::Layout& w, std::uint32_t file, const struct sockaddr* a,
                   socklen_t size, VirtualAddress& to) noexcept {
  const int error = addresses::from_sockaddr(a, size, to, w.files[file].port);
  if (error < 0) return error;
  if (to.family != w.files[file].port) return -EAFNOSUPPORT;
  if (addresses::unmap(to) && is_only_ipv6(file)) return -ENETUNREACH;
  interfaces::name_this_host(to);
  return 0;
}

// Waits until the listener has room for one more connection. Returns 0 or a negative error. A
// nonblocking socket does not wait: it gets at once the result that Linux would report later.
int await_room(Turn& turn, int fd, std::uint32_t file, const VirtualAddress& to,
               std::uint32_t& listener) noexcept {
  const WaitPolicy policy = wait_policy_of(turn.w, file, 0, send_timeout(file));
  const std::uint64_t number = dmt::new_object(turn.w, own_slot());
  for (;;) {
    listener = dmt::find_own_listener(turn.w, to, number);
    if (listener == 0) return -ECONNREFUSED;
    if (policy.nonblocking || dmt::has_room(turn.w.files[listener].listener)) return 0;
    const int error = await_object(turn, fd, file, turn.w.files[listener].object, policy);
    if (error < 0) return error == -EAGAIN ? -EINPROGRESS : error;
    if (turn.w.files[file].kind != FileKind::kSocket) return -EISCONN;
  }
}

// The source of the connection: the bound address, or the source towards `to` with a free port.
int source_of(dmt::Layout& w, std::uint32_t file, const VirtualAddress& to,
              VirtualAddress& from) noexcept {
  from = w.files[file].listener.bound;
  addresses::unmap(from);
  const std::uint16_t port = from.port;
  if (from.family == 0 || is_wildcard(from)) from = interfaces::source_for(to);
  from.port = port != 0 ? port : dmt::take_free_port(w);
  return from.port != 0 ? 0 : -EADDRNOTAVAIL;
}

// Applies options that were set before the socket was connected.
void apply_options(Turn& turn, std::uint32_t file) noexcept {
  FileRecord& f = turn.w.files[file];
  apply_linger(turn.w, file);
  apply_urgent_inline(turn.w, file);
  f.connection.low_water = std::min<std::uint32_t>(low_water(file), dmt::kReceiveWindow / 2);
}

int connect_to_own(Turn& turn, int fd, std::uint32_t file, const VirtualAddress& to) noexcept {
  FileRecord& f = turn.w.files[file];
  std::uint32_t listener = 0;
  int error = await_room(turn, fd, file, to, listener);
  if (error == -ECONNREFUSED && f.nonblocking) {
    dmt::refuse_later(turn.w, file);
    return -EINPROGRESS;
  }
  if (error < 0) return error;
  VirtualAddress local;
  error = source_of(turn.w, file, to, local);
  if (error < 0) return error;
  if (!dmt::connect_loopback(turn.w, own_slot(), file, listener, local, to)) return -ENOBUFS;
  if (f.port == AF_INET6) {
    addresses::map_to_ipv6(f.connection.peer);
    addresses::map_to_ipv6(f.connection.local);
  }
  f.connection.reported_connected = !f.nonblocking;
  apply_options(turn, file);
  return f.nonblocking ? -EINPROGRESS : 0;
}

// Waits for CONNECTED. Returns -under_way if the socket does not wait, or no longer waits.
int await_outcome(Turn& turn, int fd, std::uint32_t file, int under_way) noexcept {
  FileRecord& f = turn.w.files[file];
  const WaitPolicy policy = wait_policy_of(turn.w, file, 0, send_timeout(file));
  while (f.kind == FileKind::kConnection && f.connection.connecting) {
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error == -EAGAIN ? -under_way : error;
  }
  if (f.kind == FileKind::kSocket || f.kind == FileKind::kUnixSocket) {
    const int error = take_connect_error(turn.w, file);
    return error != 0 ? -error : -ECONNABORTED;  // another call got the error
  }
  if (f.kind != FileKind::kConnection || f.connection.reported_connected) return -EISCONN;
  f.connection.reported_connected = true;
  return 0;
}

// Returns the address to which the leader binds its socket. The address that the server sees as its
// own does not exist on any host, so it is left out.
VirtualAddress source_for_leader(const dmt::ListenerState& l, const VirtualAddress& to) noexcept {
  VirtualAddress from{};
  from.family = to.family;
  if (l.bound.family == to.family &&
      (interfaces::is_loopback(l.bound) || !interfaces::is_own(l.bound))) {
    from = l.bound;
  }
  from.port = (l.any_address & dmt::kChosenPort) != 0 ? std::uint16_t{0} : l.bound.port;
  return from;
}

int connect_elsewhere(Turn& turn, int fd, std::uint32_t file, const VirtualAddress& to) noexcept {
  FileRecord& f = turn.w.files[file];
  dmt::begin_connect(turn.w, file, to, source_for_leader(f.listener, to));
  return await_connected(turn, fd, file);
}

// Whether the address is not a listener of this server.
bool is_elsewhere(const dmt::Layout& w, const VirtualAddress& to) noexcept {
  if (!interfaces::is_own(to)) return true;
  return interfaces::is_loopback(to) && dmt::find_own_listener(w, to, 0) == 0;
}

}  // namespace

int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
            socklen_t size) noexcept {
  dmt::ListenerState& own = turn.w.files[file].listener;
  if ((own.any_address & dmt::kDissolved) != 0) own.connect_error = own.any_address = 0;
  if (own.connect_error != 0) return -take_connect_error(turn.w, file);
  VirtualAddress to;
  if (is_unspecified(a, size)) return 0;
  if (const int error = destination_of(turn.w, file, a, size, to); error < 0) return error;
  return is_elsewhere(turn.w, to) ? connect_elsewhere(turn, fd, file, to)
                                  : connect_to_own(turn, fd, file, to);
}

int connect_again(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                  socklen_t size) noexcept {
  if (!unix_socket::is_to_host(turn.w.files[file]) && is_unspecified(a, size)) {
    dmt::disconnect(turn.w, file);
    return 0;
  }
  if (is_inbound(turn.w.files[file].connection)) return -EISCONN;
  return await_outcome(turn, fd, file, EALREADY);
}

int connect_listener(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
                     socklen_t size) noexcept {
  return is_unspecified(a, size) ? shutdown(turn, fd, file, SHUT_RD) : -EISCONN;
}

int await_connected(Turn& turn, int fd, std::uint32_t file) noexcept {
  apply_options(turn, file);
  return await_outcome(turn, fd, file, EINPROGRESS);
}

int take_connect_error(dmt::Layout& w, std::uint32_t file) noexcept {
  const int error = w.files[file].listener.connect_error;
  w.files[file].listener.connect_error = 0;
  if (error != 0) dmt::refresh_readiness(w, file, false);
  return error;
}

}  // namespace crane::tcp_socket
