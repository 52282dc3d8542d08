// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/kernel_socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/unix_socket.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::kernel_socket {
namespace {

constexpr std::int64_t kLookAgainNs = 1'000'000'000;

// --- netlink: a server must not change the machine's network (MACHINE-1) -------------------------

// Protocols that serve only to change the network: they fail as on a kernel without them.
bool is_of_administrators(int protocol) noexcept {
  return protocol == NETLINK_NETFILTER || protocol == NETLINK_XFRM;
}

// Copies `size` bytes at `at` of the message, which may span several pieces. False: the message is
// shorter, or is not the program's memory; the kernel reports that error.
bool copy_at(const struct msghdr& m, std::size_t at, void* out, std::size_t size) noexcept {
  auto* to = static_cast<char*>(out);
  for (std::size_t i = 0; i < m.msg_iovlen && size > 0; ++i) {
    const struct iovec& piece = m.msg_iov[i];
    if (at >= piece.iov_len) {
      at -= piece.iov_len;
      continue;
    }
    const std::size_t n = std::min(size, piece.iov_len - at);
    const char* const from = static_cast<const char*>(piece.iov_base) + at;
    if (!crane::is_readable(from, n)) return false;
    std::memcpy(to, from, n);
    to += n;
    size -= n;
    at = 0;
  }
  return size == 0;
}

// Of each four request types, the third only reads (RTM_GETLINK and the like).
bool changes_network(int fd, const struct msghdr& m) noexcept {
  int protocol = 0;
  socklen_t n = sizeof protocol;
  const long error = raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n);
  if (error < 0 || protocol != NETLINK_ROUTE) return false;
  struct nlmsghdr head;
  for (std::size_t at = 0; copy_at(m, at, &head, sizeof head); at += NLMSG_ALIGN(head.nlmsg_len)) {
    if (head.nlmsg_type >= RTM_BASE && (head.nlmsg_type - RTM_BASE) % 4 != 2) return true;
    if (head.nlmsg_len < sizeof head) break;
  }
  return false;
}

// Records that the socket has something to read, or has nothing any more.
void set_readable(dmt::Layout& w, std::uint32_t file, bool readable, bool edge) noexcept {
  w.files[file].listener.queued = readable ? 1 : 0;
  dmt::refresh_readiness(w, file, edge);
}

// Returns the kernel's report for the caller's own socket.  The value is stable, because threads
// send only at a turn.
bool is_readable(int fd) noexcept {
  struct pollfd p = {fd, POLLIN, 0};
  return raw_syscall(SYS_poll, &p, 1, 0) == 1;
}

// Returns the server's own socket that the message goes to, or 0.
std::uint32_t target_of(dmt::Layout& w, int fd, const struct msghdr& m) noexcept {
  constexpr FileKind kKind = FileKind::kKernelSocket;
  if (m.msg_name != nullptr && m.msg_namelen > 0) {
    return unix_socket::find(w, kKind, static_cast<const struct sockaddr*>(m.msg_name),
                             m.msg_namelen);
  }
  struct sockaddr_un peer {};
  socklen_t n = sizeof peer;
  auto* const address = reinterpret_cast<struct sockaddr*>(&peer);
  if (raw_syscall(SYS_getpeername, fd, address, &n) < 0) return 0;
  return unix_socket::find(w, kKind, address, std::min<socklen_t>(n, sizeof peer));
}

// 0: try again; else a negative error number.
int wait(Turn& turn, int fd, std::uint32_t file, std::uint32_t awaited,
         const WaitPolicy& policy) noexcept {
  if (policy.nonblocking) return -EAGAIN;
  WaitPolicy part = policy;
  part.deadline_ns = std::min(policy.deadline_ns, deadline_after(turn.w, kLookAgainNs));
  const int error = await_object(turn, fd, file, turn.w.files[awaited].object, part);
  const bool looks_again = error == -EAGAIN && turn.now() < policy.deadline_ns;
  return looks_again ? 0 : error;
}

}  // namespace

int create(Turn& turn, int domain, int type, int protocol) noexcept {
  if (domain == AF_NETLINK && is_of_administrators(protocol)) return -EPROTONOSUPPORT;
  const long fd = raw_syscall(SYS_socket, domain, type, protocol);
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), FileKind::kKernelSocket);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].port = static_cast<std::uint16_t>(domain);
  turn.w.files[file].nonblocking = (type & SOCK_NONBLOCK) != 0;
  return bind_new(turn, fd, file);
}

int bind(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept {
  if (turn.w.files[file].port == AF_UNIX) return unix_socket::bind(turn, fd, file, a, n);
  return static_cast<int>(raw_syscall(SYS_bind, fd, a, n));
}

int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept {
  const long result = raw_syscall(SYS_shutdown, fd, how);
  if (result < 0) return static_cast<int>(result);
  set_readable(turn.w, file, is_readable(fd), true);
  dmt::signal(turn.w, turn.w.files[file].object, dmt::kAll);
  return 0;
}

ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& m, int flags) noexcept {
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, flags, tcp_socket::receive_timeout(file));
  for (;;) {
    const long result = raw_syscall(SYS_recvmsg, fd, &m, flags | MSG_DONTWAIT);
    set_readable(turn.w, file, is_readable(fd), false);
    if (result != -EAGAIN) {
      if (result < 0 || (flags & MSG_PEEK) != 0) return result;
      stream::bind_received_rights(turn, file, m);
      // Senders may wait for a place in the queue.
      dmt::signal(turn.w, turn.w.files[file].object, dmt::kAll);
      return result;
    }
    const int error = wait(turn, fd, file, file, policy);
    if (error < 0) return error;
  }
}

ssize_t send(Turn& turn, int fd, std::uint32_t file, const struct msghdr& m, int flags) noexcept {
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, flags, tcp_socket::send_timeout(file));
  const bool is_unix = turn.w.files[file].port == AF_UNIX;
  if (!is_unix && changes_network(fd, m)) return -EPERM;
  for (;;) {
    if (is_unix && !stream::has_room_for_rights(turn.w, m)) return -ETOOMANYREFS;
    const long result = raw_syscall(SYS_sendmsg, fd, &m, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    const std::uint32_t target = is_unix ? target_of(turn.w, fd, m) : 0;
    if (result != -EAGAIN) {
      if (result == -EPIPE && (flags & MSG_NOSIGNAL) == 0) raise_virtually(turn, SIGPIPE);
      if (result < 0) return result;
      // The kernel has already answered what was sent to it.
      if (!is_unix) set_readable(turn.w, file, is_readable(fd), true);
      if (target == 0) return result;
      set_readable(turn.w, target, true, true);
      stream::note_sent_rights(turn, target, m);
      return result;
    }
    const int error = wait(turn, fd, file, target != 0 ? target : file, policy);
    if (error < 0) return error;
  }
}

}  // namespace crane::kernel_socket
