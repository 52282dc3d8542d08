// SPDX-License-Identifier: Apache-2.0
// recv, send and similar calls.
#include <climits>

#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/sockets/rights.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

bool passes_own_descriptor(const struct msghdr& message) noexcept {
  bool found = false;
  each_rights(message, [&](const Rights& rights) {
    for (std::size_t i = 0; i < rights.count(); ++i) found |= is_own_descriptor(rights.at(i));
  });
  return found;
}

ssize_t receive_message(Turn& turn, int fd, struct msghdr& m, int flags) noexcept {
  if (m.msg_iovlen > IOV_MAX) return -EMSGSIZE;
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return raw_syscall(SYS_recvmsg, fd, &m, flags);
  return ops_of(turn, file).socket->receive(turn, fd, file, m, flags);
}

ssize_t send_message(Turn& turn, int fd, const struct msghdr& m, int flags) noexcept {
  if (m.msg_iovlen > IOV_MAX) return -EMSGSIZE;
  const std::uint32_t file = bound_file(fd);
  if (passes_own_descriptor(m)) return -EBADF;  // OWN-FD-1
  if (file == 0) return raw_syscall(SYS_sendmsg, fd, &m, flags);
  return ops_of(turn, file).socket->send(turn, fd, file, m, flags);
}

// Returns SO_ERROR of a socket that has one, or null.
std::int32_t* pending_error(int fd) noexcept {
  FileRecord* const f = bound_record(fd);
  if (f == nullptr) return nullptr;
  if (f->kind == FileKind::kConnection) return &f->connection.socket_error;
  return f->kind == FileKind::kDatagram ? &f->datagram.error : nullptr;
}

// For a series of messages: a pending error is returned before the series, and an error that ends
// the series is returned by the next call.
int exchange_error(dmt::Layout& w, int fd, int error) noexcept {
  std::int32_t* const pending = pending_error(fd);
  if (pending == nullptr || *pending == error) return 0;
  const int before = *pending;
  *pending = error;
  dmt::refresh_readiness(w, bound_file(fd), false);
  return before;
}

// Receives into one buffer; the fast path for connections.
ssize_t receive_buffer(Turn& turn, int fd, void* b, std::size_t n, int flags, struct sockaddr* a,
                       socklen_t* an) noexcept {
  struct iovec v = {b, n};
  const FileRecord* f = bound_record(fd);
  if (f != nullptr && f->kind == FileKind::kConnection && !dmt::is_host_fifo(*f)) {
    if (an != nullptr) *an = 0;
    return tcp_socket::receive(turn, fd, bound_file(fd), {&v, 1, n}, flags);
  }
  struct msghdr m {};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_name = a;
  m.msg_namelen = a != nullptr && an != nullptr ? *an : 0;
  const ssize_t result = receive_message(turn, fd, m, flags);
  if (result >= 0 && an != nullptr) *an = m.msg_namelen;
  return result;
}

ssize_t send_buffer(Turn& turn, int fd, const void* b, std::size_t n, int flags,
                    const struct sockaddr* a, socklen_t an) noexcept {
  struct iovec v = {const_cast<void*>(b), n};
  struct msghdr m {};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_name = const_cast<struct sockaddr*>(a);
  m.msg_namelen = a != nullptr ? an : 0;
  return send_message(turn, fd, m, flags);
}

}  // namespace

ssize_t recv(int fd, void* b, size_t n, int flags) {
  Turn turn(Op::recv, Turn::kCancellationPoint);
  return finish(turn, receive_buffer(turn, fd, b, n, flags, nullptr, nullptr));
}
ssize_t __recv_chk(int fd, void* b, size_t n, size_t room, int flags) {
  fortify::check_room(n, room);
  return wrap::recv(fd, b, n, flags);
}

ssize_t recvfrom(int fd, void* b, size_t n, int flags, struct sockaddr* a, socklen_t* an) {
  Turn turn(Op::recvfrom, Turn::kCancellationPoint);
  return finish(turn, receive_buffer(turn, fd, b, n, flags, a, an));
}
ssize_t __recvfrom_chk(int fd, void* b, size_t n, size_t room, int flags, struct sockaddr* a,
                       socklen_t* an) {
  fortify::check_room(n, room);
  return wrap::recvfrom(fd, b, n, flags, a, an);
}

ssize_t recvmsg(int fd, struct msghdr* m, int flags) {
  Turn turn(Op::recvmsg, Turn::kCancellationPoint);
  if (!is_readable(m, sizeof *m)) return finish(turn, -EFAULT);
  return finish(turn, receive_message(turn, fd, *m, flags));
}

int recvmmsg(int fd, struct mmsghdr* m, unsigned n, int flags, struct timespec* t) {
  Turn turn(Op::recvmmsg, Turn::kCancellationPoint);
  // Linux checks the time-out only between messages, and Crane's messages take no time.
  if (t != nullptr && !is_positive(*t)) return finish_int(turn, -EINVAL);
  if ((flags & MSG_ERRQUEUE) == 0) {
    if (const int error = exchange_error(turn.w, fd, 0); error != 0) {
      return finish_int(turn, -error);
    }
  }
  unsigned done = 0;
  for (; done < n; ++done) {
    const bool first = done == 0;
    const int more = first || (flags & MSG_WAITFORONE) == 0 ? 0 : MSG_DONTWAIT;
    const ssize_t got =
        receive_message(turn, fd, m[done].msg_hdr, (flags & ~MSG_WAITFORONE) | more);
    if (got < 0 && first) return finish_int(turn, got);
    if (got < 0) {
      if (got != -EAGAIN) exchange_error(turn.w, fd, static_cast<int>(-got));
      break;
    }
    m[done].msg_len = static_cast<unsigned>(got);
  }
  return finish_int(turn, done);
}

ssize_t send(int fd, const void* b, size_t n, int flags) {
  Turn turn(Op::send, Turn::kCancellationPoint);
  return finish(turn, send_buffer(turn, fd, b, n, flags, nullptr, 0));
}
ssize_t sendto(int fd, const void* b, size_t n, int flags, const struct sockaddr* a, socklen_t an) {
  Turn turn(Op::sendto, Turn::kCancellationPoint);
  return finish(turn, send_buffer(turn, fd, b, n, flags, a, an));
}
ssize_t sendmsg(int fd, const struct msghdr* m, int flags) {
  Turn turn(Op::sendmsg, Turn::kCancellationPoint);
  if (!is_readable(m, sizeof *m)) return finish(turn, -EFAULT);
  return finish(turn, send_message(turn, fd, *m, flags));
}

int sendmmsg(int fd, struct mmsghdr* m, unsigned n, int flags) {
  Turn turn(Op::sendmmsg, Turn::kCancellationPoint);
  unsigned done = 0;
  for (; done < n; ++done) {
    const ssize_t put = send_message(turn, fd, m[done].msg_hdr, flags);
    if (put < 0 && done == 0) return finish_int(turn, put);
    if (put < 0) break;
    m[done].msg_len = static_cast<unsigned>(put);
  }
  return finish_int(turn, done);
}

}  // namespace crane::wrap
