// SPDX-License-Identifier: Apache-2.0
// Sockets: TCP and UDP are virtual (vsock.h, dsock.h), unix streams are the kernel's but counted
// (usock.h, stream.h), unix datagrams and netlink too (ksock.h), everything else is refused by
// name.
#include "dmt/base/log.h"
#include "runtime/preload/core/wrappers.h"
#include "runtime/preload/sockets/dsock.h"
#include "runtime/preload/sockets/ksock.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/usock.h"
#include "runtime/preload/sockets/vsock.h"

namespace crane::wrap {
namespace {

bool is_virtual(FileKind kind) noexcept {
  return kind == FileKind::kSocket || kind == FileKind::kListener || kind == FileKind::kConnection;
}

bool is_unix(FileKind kind) noexcept {
  return kind == FileKind::kUnixSocket || kind == FileKind::kUnixListener ||
         kind == FileKind::kUnixStream;
}

// Names and options are the kernel's.
bool is_kernels(FileKind kind) noexcept { return is_unix(kind) || kind == FileKind::kKernelSocket; }

// What a call on something that is no socket gives.
int not_a_socket(int fd) noexcept { return is_open(fd) ? -ENOTSOCK : -EBADF; }

// Plain descriptors are sockets from outside of the server, or no sockets: the kernel answers.
template <typename... Arguments>
int plain_call(long number, int fd, Arguments... arguments) noexcept {
  return static_cast<int>(raw_syscall(number, fd, arguments...));
}

int make_socket(Turn& turn, int domain, int type, int protocol) noexcept {
  switch (domain) {
    case AF_UNIX:
      return usock::create(turn, type, protocol);
    case AF_INET:
    case AF_INET6:
      if (dsock::is_udp(type, protocol)) return dsock::create(turn, domain, type);
      return vsock::create(turn, domain, type, protocol);
    case AF_NETLINK:
      return ksock::create(turn, domain, type, protocol);
    default:
      return -EAFNOSUPPORT;
  }
}

int accept_any(Turn& turn, int fd, struct sockaddr* a, socklen_t* n, int flags) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return not_a_socket(fd);
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind)) return vsock::accept(turn, fd, file, a, n, flags);
  if (kind == FileKind::kDatagram || kind == FileKind::kKernelSocket) return -EOPNOTSUPP;
  if (is_unix(kind)) return usock::accept(turn, fd, file, a, n, flags);
  return -ENOTSOCK;
}

int name_of(Turn& turn, long number, int fd, bool of_peer, struct sockaddr* a,
            socklen_t* n) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return plain_call(number, fd, a, n);
  const FileKind kind = turn.w.files[file].kind;
  if (usock::is_to_host(turn.w.files[file])) return usock::name(fd, file, of_peer, a, n);
  if (is_virtual(kind)) return vsock::name(file, of_peer, a, n);
  if (kind == FileKind::kDatagram) return dsock::name(file, of_peer, a, n);
  return is_kernels(kind) ? static_cast<int>(raw_syscall(number, fd, a, n)) : -ENOTSOCK;
}

// What a connect to a socket of the host came to.
bool is_outcome(FileKind kind, int level, int name) noexcept {
  return kind == FileKind::kUnixSocket && level == SOL_SOCKET && name == SO_ERROR;
}

// How long and for how much a call waits is ours also of unix sockets.
bool is_timeout(int level, int name) noexcept {
  return level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO || name == SO_RCVLOWAT);
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
  return finish_int(turn, usock::pair(turn, type, protocol, fds));
}

int bind(int fd, const struct sockaddr* a, socklen_t n) {
  Turn turn(Op::bind);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_bind, fd, a, n));
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind)) return finish_int(turn, vsock::bind(turn, file, a, n));
  if (kind == FileKind::kDatagram) return finish_int(turn, dsock::bind(turn, file, a, n));
  if (kind == FileKind::kUnixSocket) return finish_int(turn, usock::bind(turn, fd, file, a, n));
  if (kind == FileKind::kKernelSocket) return finish_int(turn, ksock::bind(turn, fd, file, a, n));
  return finish_int(turn, is_unix(kind) ? -EINVAL : -ENOTSOCK);
}

int listen(int fd, int backlog) {
  Turn turn(Op::listen);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_listen, fd, backlog));
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind)) return finish_int(turn, vsock::listen(turn, file, backlog));
  if (kind == FileKind::kDatagram || kind == FileKind::kKernelSocket) {
    return finish_int(turn, -EOPNOTSUPP);
  }
  if (is_unix(kind)) return finish_int(turn, usock::listen(turn, fd, file, backlog));
  return finish_int(turn, -ENOTSOCK);
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
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind)) return finish_int(turn, vsock::connect(turn, fd, file, a, n));
  if (kind == FileKind::kDatagram) return finish_int(turn, dsock::connect(turn, file, a, n));
  if (kind == FileKind::kKernelSocket) {
    return finish_int(turn, plain_call(SYS_connect, fd, a, n));  // says who, and never waits
  }
  if (is_unix(kind)) return finish_int(turn, usock::connect(turn, fd, file, a, n));
  return finish_int(turn, -ENOTSOCK);
}

int shutdown(int fd, int how) {
  Turn turn(Op::shutdown);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_shutdown, fd, how));
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind)) return finish_int(turn, vsock::shutdown(turn, file, how));
  if (kind == FileKind::kDatagram) return finish_int(turn, dsock::shutdown(turn, file, how));
  if (kind == FileKind::kKernelSocket) {
    return finish_int(turn, ksock::shutdown(turn, fd, file, how));
  }
  if (kind == FileKind::kUnixStream) {
    return finish_int(turn, stream::shutdown(turn, fd, file, how));
  }
  return finish_int(turn, is_unix(kind) ? -ENOTCONN : -ENOTSOCK);
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
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind) || is_outcome(kind, level, name) ||
      (is_kernels(kind) && is_timeout(level, name))) {
    return finish_int(turn, vsock::get_option(file, level, name, value, n));
  }
  if (kind == FileKind::kDatagram) {
    return finish_int(turn, dsock::get_option(turn, file, level, name, value, n));
  }
  if (!is_kernels(kind)) return finish_int(turn, -ENOTSOCK);
  return finish_int(turn, raw_syscall(SYS_getsockopt, fd, level, name, value, n));
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t n) {
  Turn turn(Op::setsockopt);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish_int(turn, plain_call(SYS_setsockopt, fd, level, name, value, n));
  const FileKind kind = turn.w.files[file].kind;
  if (is_virtual(kind) || (is_kernels(kind) && is_timeout(level, name))) {
    return finish_int(turn, vsock::set_option(turn, file, level, name, value, n));
  }
  if (kind == FileKind::kDatagram) {
    return finish_int(turn, dsock::set_option(turn, file, level, name, value, n));
  }
  if (!is_kernels(kind)) return finish_int(turn, -ENOTSOCK);
  // Time-outs and sizes of ours hold: the kernel's must not make it wait or refuse on its own.
  const bool size =
      is_unix(kind) && level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF);
  if (size) return finish_int(turn, 0);
  return finish_int(turn, raw_syscall(SYS_setsockopt, fd, level, name, value, n));
}

int sockatmark(int fd) { return is_plain(fd) ? fail(ENOTTY) : 0; }

}  // namespace crane::wrap
