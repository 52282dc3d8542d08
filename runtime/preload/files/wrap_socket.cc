// SPDX-License-Identifier: Apache-2.0
// Sockets: each kind has its operations (socket_ops.cc); calls with other families fail with a
// message.
#include <linux/sockios.h>

#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/sockets/kernel_socket.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/udp_socket.h"
#include "runtime/preload/sockets/unix_socket.h"

namespace crane::wrap {
namespace {

// Returns the error of a socket call on another file.
int not_a_socket(int fd) noexcept { return is_open(fd) ? -ENOTSOCK : -EBADF; }

// A plain descriptor is a socket from outside the server, or not a socket: the kernel handles the
// call.
template <typename... Arguments>
int plain_call(long number, int fd, Arguments... arguments) noexcept {
  return static_cast<int>(raw_syscall(number, fd, arguments...));
}

int make_socket(Turn& turn, int domain, int type, int protocol) noexcept {
  switch (domain) {
    case AF_UNIX:
      return unix_socket::create(turn, type, protocol);
    case AF_INET:
    case AF_INET6:
      if (udp_socket::is_udp(type, protocol)) return udp_socket::create(turn, domain, type);
      return tcp_socket::create(turn, domain, type, protocol);
    case AF_NETLINK:
      return kernel_socket::create(turn, domain, type, protocol);
    default:
      return -EAFNOSUPPORT;
  }
}

int accept_any(Turn& turn, int fd, struct sockaddr* a, socklen_t* n, int flags) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return not_a_socket(fd);
  return ops_of(turn, file).socket->accept(turn, fd, file, a, n, flags);
}

int name_of(Turn& turn, long number, int fd, bool of_peer, struct sockaddr* a,
            socklen_t* n) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return plain_call(number, fd, a, n);
  return ops_of(turn, file).socket->name(fd, file, of_peer, a, n);
}

}  // namespace

int socket(int domain, int type, int protocol) {
  Turn turn(Op::socket);
  return finish_int(turn, make_socket(turn, domain, type, protocol));
}

int socketpair(int domain, int type, int protocol, int* fds) {
  Turn turn(Op::socketpair);
  if (domain == AF_INET || domain == AF_INET6) return finish_int(turn, -EOPNOTSUPP);
  if (domain != AF_UNIX) return finish_int(turn, -EAFNOSUPPORT);
  return finish_int(turn, unix_socket::pair(turn, type, protocol, fds));
}

int bind(int fd, const struct sockaddr* a, socklen_t n) {
  Turn turn(Op::bind);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_bind, fd, a, n));
  return finish_int(turn, ops_of(turn, file).socket->bind(turn, fd, file, a, n));
}

int listen(int fd, int backlog) {
  Turn turn(Op::listen);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_listen, fd, backlog));
  return finish_int(turn, ops_of(turn, file).socket->listen(turn, fd, file, backlog));
}

int accept(int fd, struct sockaddr* a, socklen_t* n) {
  Turn turn(Op::accept, Turn::kCancellationPoint);
  return finish_int(turn, accept_any(turn, fd, a, n, 0));
}
int accept4(int fd, struct sockaddr* a, socklen_t* n, int flags) {
  Turn turn(Op::accept4, Turn::kCancellationPoint);
  return finish_int(turn, accept_any(turn, fd, a, n, flags));
}

int connect(int fd, const struct sockaddr* a, socklen_t n) {
  Turn turn(Op::connect, Turn::kCancellationPoint);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_connect, fd, a, n));
  return finish_int(turn, ops_of(turn, file).socket->connect(turn, fd, file, a, n));
}

int shutdown(int fd, int how) {
  Turn turn(Op::shutdown);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_shutdown, fd, how));
  return finish_int(turn, ops_of(turn, file).socket->shutdown(turn, fd, file, how));
}

int getsockname(int fd, struct sockaddr* a, socklen_t* n) {
  Turn turn(Op::getsockname);
  return finish_int(turn, name_of(turn, SYS_getsockname, fd, false, a, n));
}
int getpeername(int fd, struct sockaddr* a, socklen_t* n) {
  Turn turn(Op::getpeername);
  return finish_int(turn, name_of(turn, SYS_getpeername, fd, true, a, n));
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* n) {
  Turn turn(Op::getsockopt);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_getsockopt, fd, level, name, value, n));
  return finish_int(turn,
                    ops_of(turn, file).socket->get_option(turn, fd, file, level, name, value, n));
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t n) {
  Turn turn(Op::setsockopt);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_setsockopt, fd, level, name, value, n));
  return finish_int(turn,
                    ops_of(turn, file).socket->set_option(turn, fd, file, level, name, value, n));
}

int sockatmark(int fd) {
  int is_at = 0;
  return wrap::ioctl(fd, SIOCATMARK, reinterpret_cast<long>(&is_at)) < 0 ? -1 : is_at;
}

}  // namespace crane::wrap
