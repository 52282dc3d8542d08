// SPDX-License-Identifier: Apache-2.0
// TCP and UDP are virtual (tcp_socket.h, udp_socket.h). Unix streams are the kernel's, but Crane
// counts their bytes (unix_socket.h, stream.h); unix datagrams and netlink are the kernel's, too
// (kernel_socket.h).
#include "runtime/preload/sockets/socket_ops.h"

#include "runtime/preload/ground/buffers.h"
#include "runtime/preload/sockets/kernel_socket.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/udp_socket.h"
#include "runtime/preload/sockets/unix_socket.h"

namespace crane {
namespace {

// --- TCP -----------------------------------------------------------------------------------------

int tcp_get_option(Turn& turn, int, std::uint32_t file, int level, int option, void* value,
                   socklen_t* n) noexcept {
  return tcp_socket::get_option(turn.w, file, level, option, value, n);
}

int tcp_set_option(Turn& turn, int, std::uint32_t file, int level, int option, const void* value,
                   socklen_t n) noexcept {
  return tcp_socket::set_option(turn, file, level, option, value, n);
}

CRANE_REQUIRES_TURN int tcp_connection_name(int fd, std::uint32_t file, bool of_peer,
                                            struct sockaddr* a, socklen_t* n) noexcept {
  if (unix_socket::is_to_host(segment->files[file]))
    return unix_socket::name(fd, file, of_peer, a, n);
  return tcp_socket::connection_name(file, of_peer, a, n);
}

ssize_t tcp_receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept {
  Buffers b;
  const int bad = make_buffers(m.msg_iov, m.msg_iovlen, b);
  if (bad < 0) return bad;
  m.msg_flags = 0;
  m.msg_controllen = 0;
  m.msg_namelen = 0;
  const ssize_t result = tcp_socket::receive(turn, fd, file, b, flags);
  if (result >= 0 && (flags & MSG_OOB) != 0) m.msg_flags |= MSG_OOB;
  if (result == 0 && (flags & MSG_OOB) != 0) m.msg_flags |= MSG_TRUNC;
  return result;
}

ssize_t tcp_send(Turn& turn, int fd, std::uint32_t file, const struct msghdr& m,
                 int flags) noexcept {
  if (m.msg_controllen > 0 && unix_socket::is_to_host(turn.w.files[file])) {
    return unix_socket::refuse_credentials();
  }
  Buffers b;
  const int bad = make_buffers(m.msg_iov, m.msg_iovlen, b);
  if (bad < 0) return bad;
  const ssize_t result = tcp_socket::send(turn, fd, file, b, flags);
  if (is_parallel()) turn.yield();  // rule 23
  return result;
}

// --- the kernel's sockets ------------------------------------------------------------------------

// Sets the peer; never waits.
int kernel_connect(Turn&, int fd, std::uint32_t, const struct sockaddr* a, socklen_t n) noexcept {
  return static_cast<int>(raw_syscall(SYS_connect, fd, a, n));
}

int kernel_name(int fd, std::uint32_t, bool of_peer, struct sockaddr* a, socklen_t* n) noexcept {
  return static_cast<int>(raw_syscall(of_peer ? SYS_getpeername : SYS_getsockname, fd, a, n));
}

// Crane handles these options of kernel sockets, too: how long and for how much a call waits.
bool is_timeout(int level, int option) noexcept {
  return level == SOL_SOCKET &&
         (option == SO_RCVTIMEO || option == SO_SNDTIMEO || option == SO_RCVLOWAT);
}

int kernel_get_option(Turn& turn, int fd, std::uint32_t file, int level, int option, void* value,
                      socklen_t* n) noexcept {
  if (is_timeout(level, option))
    return tcp_socket::get_option(turn.w, file, level, option, value, n);
  return static_cast<int>(raw_syscall(SYS_getsockopt, fd, level, option, value, n));
}

int kernel_set_option(Turn& turn, int fd, std::uint32_t file, int level, int option,
                      const void* value, socklen_t n) noexcept {
  if (is_timeout(level, option)) return tcp_socket::set_option(turn, file, level, option, value, n);
  return static_cast<int>(raw_syscall(SYS_setsockopt, fd, level, option, value, n));
}

// --- unix streams --------------------------------------------------------------------------------

// Crane reports the result of a connect to a socket of the host.
int new_unix_get_option(Turn& turn, int fd, std::uint32_t file, int level, int option, void* value,
                        socklen_t* n) noexcept {
  if (level == SOL_SOCKET && option == SO_ERROR) {
    return tcp_socket::get_option(turn.w, file, level, option, value, n);
  }
  return kernel_get_option(turn, fd, file, level, option, value, n);
}

// The kernel returns the error; the readiness that poll reports must be cleared as well.
int unix_get_option(Turn& turn, int fd, std::uint32_t file, int level, int option, void* value,
                    socklen_t* n) noexcept {
  const int result = kernel_get_option(turn, fd, file, level, option, value, n);
  if (result == 0 && level == SOL_SOCKET && option == SO_ERROR) {
    stream::clear_error(turn.w, file);
  }
  return result;
}

// Crane sets the sizes: other sizes could make the kernel wait or refuse.
int unix_set_option(Turn& turn, int fd, std::uint32_t file, int level, int option,
                    const void* value, socklen_t n) noexcept {
  if (level == SOL_SOCKET && (option == SO_SNDBUF || option == SO_RCVBUF)) return 0;
  return kernel_set_option(turn, fd, file, level, option, value, n);
}

ssize_t unconnected_receive(Turn& turn, int, std::uint32_t file, struct msghdr&, int) noexcept {
  return turn.w.files[file].port == SOCK_STREAM ? -EINVAL : -ENOTCONN;
}

}  // namespace

// --- the tables ----------------------------------------------------------------------------------

constexpr SocketOps kNoSocket = {
    .bind = refuse<ENOTSOCK>,
    .listen = refuse<ENOTSOCK>,
    .accept = refuse<ENOTSOCK>,
    .connect = refuse<ENOTSOCK>,
    .shutdown = refuse<ENOTSOCK>,
    .name = refuse<ENOTSOCK>,
    .get_option = refuse<ENOTSOCK>,
    .set_option = refuse<ENOTSOCK>,
    .receive = refuse<ENOTSOCK>,
    .send = refuse<ENOTSOCK>,
};

constexpr SocketOps kTcpSocket = {
    .bind = tcp_socket::bind,
    .listen = tcp_socket::listen,
    .accept = refuse<EINVAL>,
    .connect = tcp_socket::connect,
    .shutdown = tcp_socket::shutdown,
    .name = tcp_socket::name,
    .get_option = tcp_get_option,
    .set_option = tcp_set_option,
    .receive = tcp_receive,
    .send = tcp_send,
};

constexpr SocketOps kTcpListener = {
    .bind = tcp_socket::bind,
    .listen = tcp_socket::listen,
    .accept = tcp_socket::accept,
    .connect = tcp_socket::connect_listener,
    .shutdown = tcp_socket::shutdown,
    .name = tcp_socket::name,
    .get_option = tcp_get_option,
    .set_option = tcp_set_option,
    .receive = tcp_receive,
    .send = tcp_send,
};

constexpr SocketOps kTcpConnection = {
    .bind = tcp_socket::bind,
    .listen = refuse<EINVAL>,
    .accept = refuse<EINVAL>,
    .connect = tcp_socket::connect_again,
    .shutdown = tcp_socket::shutdown,
    .name = tcp_connection_name,
    .get_option = tcp_get_option,
    .set_option = tcp_set_option,
    .receive = tcp_receive,
    .send = tcp_send,
};

constexpr SocketOps kUdpSocket = {
    .bind = udp_socket::bind,
    .listen = refuse<EOPNOTSUPP>,
    .accept = refuse<EOPNOTSUPP>,
    .connect = udp_socket::connect,
    .shutdown = udp_socket::shutdown,
    .name = udp_socket::name,
    .get_option = udp_socket::get_option,
    .set_option = udp_socket::set_option,
    .receive = udp_socket::receive,
    .send = udp_socket::send,
};

constexpr SocketOps kUnixSocket = {
    .bind = unix_socket::bind,
    .listen = unix_socket::listen,
    .accept = refuse<EINVAL>,
    .connect = unix_socket::connect,
    .shutdown = unix_socket::shutdown,
    .name = kernel_name,
    .get_option = new_unix_get_option,
    .set_option = unix_set_option,
    .receive = unconnected_receive,
    .send = refuse<ENOTCONN>,
};

constexpr SocketOps kUnixListener = {
    .bind = refuse<EINVAL>,
    .listen = unix_socket::listen,
    .accept = unix_socket::accept,
    .connect = refuse<EINVAL>,
    .shutdown = unix_socket::shutdown,
    .name = kernel_name,
    .get_option = kernel_get_option,
    .set_option = unix_set_option,
    .receive = unconnected_receive,
    .send = refuse<ENOTCONN>,
};

constexpr SocketOps kUnixStream = {
    .bind = refuse<EINVAL>,
    .listen = refuse<EINVAL>,
    .accept = refuse<EINVAL>,
    .connect = refuse<EISCONN>,
    .shutdown = stream::shutdown,
    .name = kernel_name,
    .get_option = unix_get_option,
    .set_option = unix_set_option,
    .receive = stream::receive,
    .send = stream::send,
};

constexpr SocketOps kKernelSocket = {
    .bind = kernel_socket::bind,
    .listen = refuse<EOPNOTSUPP>,
    .accept = refuse<EOPNOTSUPP>,
    .connect = kernel_connect,
    .shutdown = kernel_socket::shutdown,
    .name = kernel_name,
    .get_option = kernel_get_option,
    .set_option = kernel_set_option,
    .receive = kernel_socket::receive,
    .send = kernel_socket::send,
};

}  // namespace crane
