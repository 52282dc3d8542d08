// SPDX-License-Identifier: Apache-2.0
// connect() of virtual TCP sockets: to the server's own listeners (dmt/loopback.h).
#include <algorithm>

#include "dmt/loopback.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/unreachable.h"
#include "runtime/preload/sockets/vsock.h"

namespace crane::vsock {
namespace {

// The address that connect names, as the segment has addresses.
int destination_of(std::uint32_t file, const struct sockaddr* a, socklen_t size,
                   VirtualAddress& to) noexcept {
  const int error = addresses::from_sockaddr(a, size, to, world->files[file].port);
  if (error < 0) return error;
  if (to.family != world->files[file].port) return -EAFNOSUPPORT;
  if (addresses::unmap(to) && is_only_ipv6(file)) return -ENETUNREACH;
  interfaces::name_this_host(to);
  return 0;
}

// Waits until the listener has room for one more.  0, or a negative error; a nonblocking socket
// does not wait: what Linux would do later is done at once.
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

// Where the connection comes from: as bound, or the address that speaks to `to` and a free port.
int source_of(dmt::Layout& w, std::uint32_t file, const VirtualAddress& to,
              VirtualAddress& from) noexcept {
  from = w.files[file].listener.bound;
  addresses::unmap(from);
  const std::uint16_t port = from.port;
  if (from.family == 0 || dmt::is_wildcard(from)) from = interfaces::source_for(to);
  from.port = port != 0 ? port : dmt::take_free_port(w);
  return from.port != 0 ? 0 : -EADDRNOTAVAIL;
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
  f.connection.told_connected = !f.nonblocking;
  apply_linger(file);
  f.connection.low_water = std::min<std::uint32_t>(low_water(file), dmt::kReceiveWindow / 2);
  return f.nonblocking ? -EINPROGRESS : 0;
}

}  // namespace

int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
            socklen_t size) noexcept {
  FileRecord& f = turn.w.files[file];
  if (f.kind == FileKind::kConnection) {
    if (f.connection.told_connected || !f.connection.loopback) return -EISCONN;
    f.connection.told_connected = true;
    return 0;
  }
  if (f.kind == FileKind::kListener) return -EISCONN;
  if (f.listener.connect_error != 0) return -take_connect_error(turn.w, file);
  VirtualAddress to;
  const int error = destination_of(file, a, size, to);
  if (error < 0) return error == -EAFNOSUPPORT && a->sa_family == AF_UNSPEC ? 0 : error;
  if (interfaces::is_own(to)) return connect_to_own(turn, fd, file, to);
  unreachable::name(unreachable::What::kConnect, to);
  return -ECONNREFUSED;
}

int take_connect_error(dmt::Layout& w, std::uint32_t file) noexcept {
  const int error = w.files[file].listener.connect_error;
  w.files[file].listener.connect_error = 0;
  if (error != 0) dmt::refresh_readiness(w, file, false);
  return error;
}

}  // namespace crane::vsock
