// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/unix_socket.h"

#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "dmt/base/log.h"
#include "dmt/blocks.h"
#include "dmt/outbound.h"
#include "dmt/socket_directories.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/sockets/kernel_socket.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane::unix_socket {
namespace {

// The kernel's queue is larger than any queue of ours, so it is never full first.
constexpr int kBacklogMax = 128, kKernelBacklog = 4096;
constexpr int kTypeFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

std::uint64_t hash(std::uint64_t h, const char* bytes, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    h = (h ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3;
  }
  return h;
}

constexpr std::uint64_t kStart = 0xCBF29CE484222325;

bool is_abstract(const struct sockaddr* a) noexcept {
  return reinterpret_cast<const sockaddr_un*>(a)->sun_path[0] == '\0';
}

// The path of an address, terminated by a 0.
struct SocketPath {
  char text[sizeof(sockaddr_un::sun_path) + 1] = {};
  SocketPath(const struct sockaddr* a, socklen_t n) noexcept {
    const std::size_t size = n - offsetof(sockaddr_un, sun_path);
    std::memcpy(text, reinterpret_cast<const sockaddr_un*>(a)->sun_path,
                std::min(size, sizeof text - 1));
  }
};

std::uint64_t name_of_file(std::uint64_t number) noexcept {
  return hash(kStart ^ 1, reinterpret_cast<const char*>(&number), sizeof number);
}

// Hashes the name of an abstract socket, or the file that the path leads to: over links, from
// another root, or by a later name. 0: the file does not exist.
std::uint64_t name_of(dmt::Layout& w, const struct sockaddr* a, socklen_t n) noexcept {
  const auto* un = reinterpret_cast<const sockaddr_un*>(a);
  if (is_abstract(a)) return hash(kStart, un->sun_path, n - offsetof(sockaddr_un, sun_path));
  const SocketPath path(a, n);
  struct stat status {};
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, path.text, &status, 0) < 0) return 0;
  return name_of_file(inode_number(w, {AT_FDCWD, path.text, 0}, status));
}

bool is_named(const struct sockaddr* a, socklen_t n) noexcept {
  return a != nullptr && n > offsetof(sockaddr_un, sun_path) && a->sa_family == AF_UNIX;
}

// Returns the name of a socket that was just bound; its file keeps its number.
std::uint64_t note_socket(Turn& turn, const struct sockaddr* a, socklen_t n) noexcept {
  if (is_abstract(a)) return name_of(turn.w, a, n);
  const SocketPath path(a, n);
  note_made(turn, AT_FDCWD, path.text);
  struct stat status {};
  raw_syscall(SYS_newfstatat, AT_FDCWD, path.text, &status, 0);
  return name_of_file(held_inode_number(turn, {AT_FDCWD, path.text, 0}, status));
}

void set_name(FileRecord& f, std::uint64_t name) noexcept {
  std::memcpy(f.listener.bound.ip, &name, sizeof name);
  f.listener.bound.family = AF_UNIX;
}

std::uint32_t find_named(const dmt::Layout& w, FileKind kind, std::uint64_t name) noexcept {
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const FileRecord& f = w.files[i];
    if (f.kind != kind || f.listener.bound.family != AF_UNIX) continue;
    if (std::memcmp(f.listener.bound.ip, &name, sizeof name) == 0) return i;
  }
  return 0;
}

// As name_of() for a path that may lead to a socket of the host. It assigns no number, because such
// files differ between hosts. 0: the socket is not the server's.
std::uint64_t known_name_of(dmt::Layout& w, const SocketPath& path) noexcept {
  struct stat status {};
  if (raw_syscall(SYS_newfstatat, AT_FDCWD, path.text, &status, 0) < 0) return 0;
  const std::uint64_t number = known_inode_number(w, status);
  return number == 0 ? 0 : name_of_file(number);
}

// Refuses a connection to a socket outside the server, which cannot be the same for all replicas.
int refuse_outside(const struct sockaddr* a) noexcept {
  const auto* un = reinterpret_cast<const sockaddr_un*>(a);
  if (un->sun_path[0] == '\0') return -ECONNREFUSED;
  struct stat status {};
  const long found = raw_syscall(SYS_stat, un->sun_path, &status);
  if (found < 0) return static_cast<int>(found);
  static bool reported = false;
  if (S_ISSOCK(status.st_mode) && first_time(reported)) {
    Message() << "connect: " << un->sun_path
              << ": not a socket of this server: such connections are not replicated; refused";
  }
  return -ECONNREFUSED;
}

long kernel_connect(int fd, const struct sockaddr* a, socklen_t n) noexcept {
  long result;
  while ((result = raw_syscall(SYS_connect, fd, a, n)) == -EAGAIN || result == -EINTR) {
    raw_syscall(SYS_sched_yield);
  }
  return result;
}

// bind without a name chooses an abstract name of five digits. The kernel's choice is random, so
// Crane chooses the name. A socket that is already bound keeps its name.
long bind_to_any(Turn& turn, int fd, sockaddr_un& name, socklen_t& size) noexcept {
  constexpr std::uint32_t kNames = 1u << 20, kSpread = 2654435761;
  constexpr int kDigits = 5;
  name.sun_family = AF_UNIX;
  size = offsetof(sockaddr_un, sun_path) + 1 + kDigits;
  auto number = static_cast<std::uint32_t>(dmt::new_object(turn.w, own_slot())) * kSpread;
  for (std::uint32_t tries = 0; tries < kNames; ++tries, ++number) {
    for (int i = 0; i < kDigits; ++i) {
      name.sun_path[kDigits - i] = "0123456789abcdef"[number >> (4 * i) & 15];
    }
    const long result = raw_syscall(SYS_bind, fd, &name, size);
    if (result != -EADDRINUSE) return result;
  }
  return -ENOSPC;
}

// Accepts the kernel's next connection that a process of the server made. Connections from outside
// are not the same on all replicas: they are closed.
long kernel_accept(int fd, struct sockaddr* a, socklen_t* n, int flags,
                   std::uint32_t connector) noexcept {
  const socklen_t room = n == nullptr ? 0 : *n;
  for (;;) {
    if (n != nullptr) *n = room;
    const long number = raw_syscall(SYS_accept4, fd, a, n, flags);
    if (number == -EAGAIN || number == -EINTR) {
      struct pollfd p = {fd, POLLIN, 0};
      raw_syscall(SYS_poll, &p, 1, -1);
      continue;
    }
    if (number < 0) return number;
    struct ucred peer {};
    socklen_t size = sizeof peer;
    raw_syscall(SYS_getsockopt, number, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    if (static_cast<std::uint32_t>(peer.pid) == connector) return number;
    raw_syscall(SYS_close, number);
    static bool reported = false;
    if (first_time(reported)) {
      Message() << "accept: a process outside the server connected to a unix socket: such"
                << " connections are not replicated; closed";
    }
  }
}

// The leader's node makes the connection, whatever this host has at the path.
int connect_to_host(Turn& turn, int fd, std::uint32_t file, const SocketPath& path) noexcept {
  if (!dmt::fits(turn.w, kSocketPathBytes)) return -ENOBUFS;
  dmt::begin_unix_connect(turn.w, file, path.text);
  return tcp_socket::await_connected(turn, fd, file);
}

}  // namespace

std::uint32_t find(dmt::Layout& w, FileKind kind, const struct sockaddr* a, socklen_t n) noexcept {
  const std::uint64_t name = is_named(a, n) ? name_of(w, a, n) : 0;
  return name == 0 ? 0 : find_named(w, kind, name);
}

int create(Turn& turn, int type, int protocol) noexcept {
  const int kind = type & ~kTypeFlags;
  if (kind != SOCK_STREAM && kind != SOCK_SEQPACKET) {
    return kernel_socket::create(turn, AF_UNIX, type, protocol);
  }
  const long fd = raw_syscall(SYS_socket, AF_UNIX, type, protocol);
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), FileKind::kUnixSocket);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].port = static_cast<std::uint16_t>(kind);
  turn.w.files[file].nonblocking = (type & SOCK_NONBLOCK) != 0;
  return bind_new(turn, fd, file);
}

int pair(Turn& turn, int type, int protocol, int* fds) noexcept {
  const long result = raw_syscall(SYS_socketpair, AF_UNIX, type, protocol, fds);
  if (result < 0) return static_cast<int>(result);
  const int made[2] = {fds[0], fds[1]};
  if (!dmt::has_room_for_files(turn.w, 2)) {
    for (const int fd : made) raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  std::uint32_t files[2];
  for (std::uint32_t& file : files) {
    file = dmt::create_file(turn.w, own_slot(), FileKind::kUnixStream);
    turn.w.files[file].port = static_cast<std::uint16_t>(type & ~kTypeFlags);
    turn.w.files[file].nonblocking = (type & SOCK_NONBLOCK) != 0;
  }
  stream::connect_ends(turn.w, files[0], files[1], stream::kUnixCapacity);
  return bind_two(turn, made, files, fds);
}

int bind(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a, socklen_t n) noexcept {
  sockaddr_un any{};
  if (a != nullptr && n == sizeof a->sa_family && a->sa_family == AF_UNIX) {
    const long result = bind_to_any(turn, fd, any, n);
    if (result < 0) return result == -EINVAL ? 0 : static_cast<int>(result);
    set_name(turn.w.files[file], name_of(turn.w, reinterpret_cast<const sockaddr*>(&any), n));
    return 0;
  }
  const long result = raw_syscall(SYS_bind, fd, a, n);
  if (result >= 0 && is_named(a, n)) {
    set_name(turn.w.files[file], note_socket(turn, a, n));
    if (!is_abstract(a)) notify::made(turn.w, AT_FDCWD, SocketPath(a, n).text);
  }
  return static_cast<int>(result);
}

int listen(Turn& turn, int fd, std::uint32_t file, int backlog) noexcept {
  FileRecord& f = turn.w.files[file];
  const long result = raw_syscall(SYS_listen, fd, kKernelBacklog);
  if (result < 0) return static_cast<int>(result);
  f.kind = FileKind::kUnixListener;
  f.listener.backlog = static_cast<std::uint32_t>(std::clamp(backlog, 0, kBacklogMax));
  dmt::refresh_readiness(turn.w, file, false);
  return 0;
}

int connect(Turn& turn, int fd, std::uint32_t file, const struct sockaddr* a,
            socklen_t n) noexcept {
  FileRecord& f = turn.w.files[file];
  if (!is_named(a, n)) return -EINVAL;
  if (f.listener.connect_error != 0) return -tcp_socket::take_connect_error(turn.w, file);
  const SocketPath path(a, n);
  const bool may_be_hosts = f.port == SOCK_STREAM && dmt::is_in_socket_directory(turn.w, path.text);
  const std::uint64_t name = may_be_hosts ? known_name_of(turn.w, path) : name_of(turn.w, a, n);
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, 0, tcp_socket::send_timeout(file));
  std::uint32_t listener = 0;
  for (;;) {
    listener = find_named(turn.w, FileKind::kUnixListener, name);
    if (listener == 0) {
      return may_be_hosts ? connect_to_host(turn, fd, file, path) : refuse_outside(a);
    }
    const dmt::ListenerState& l = turn.w.files[listener].listener;
    if ((l.any_address & dmt::kShutRead) != 0) return -ECONNREFUSED;
    if (l.queued <= l.backlog) break;
    if (policy.nonblocking) return -EAGAIN;
    const int error = await_object(turn, fd, file, turn.w.files[listener].object, policy);
    if (error < 0) return error;
  }
  if (turn.w.files[listener].port != f.port) return -EPROTOTYPE;
  // The kernel's connection cannot be undone: its listener would have one more than ours.
  if (!dmt::has_room_for_files(turn.w, 1)) return -ENFILE;
  const long result = kernel_connect(fd, a, n);
  if (result < 0) return static_cast<int>(result);
  const std::uint32_t served = dmt::create_file(turn.w, own_slot(), FileKind::kUnixStream);
  const std::uint16_t shut = f.listener.any_address;
  f.kind = FileKind::kUnixStream;
  turn.w.files[served].port = f.port;
  stream::connect_ends(turn.w, file, served, stream::kUnixCapacity);
  turn.w.files[served].stream.connector = static_cast<std::uint32_t>(raw_syscall(SYS_getpid));
  f.stream.shut_read = (shut & dmt::kShutRead) != 0;
  f.stream.shut_write = (shut & dmt::kShutWrite) != 0;
  if (shut != 0) dmt::refresh_readiness(turn.w, file, true);
  dmt::ListenerState& l = turn.w.files[listener].listener;
  (l.tail != 0 ? turn.w.files[l.tail].chain : l.head) = served;
  l.tail = served;
  ++l.queued;
  dmt::refresh_readiness(turn.w, listener, true);
  return 0;
}

// As Linux: a closed direction stays closed after connect; a listener accepts no more connections.
int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  const long result = raw_syscall(SYS_shutdown, fd, how);
  if (result < 0) return static_cast<int>(result);
  FileRecord& f = turn.w.files[file];
  if (how != SHUT_WR) f.listener.any_address |= dmt::kShutRead;
  if (how != SHUT_RD) f.listener.any_address |= dmt::kShutWrite;
  dmt::refresh_readiness(turn.w, file, true);
  dmt::signal(turn.w, f.object, dmt::kAll);
  return 0;
}

int accept(Turn& turn, int fd, std::uint32_t file, struct sockaddr* a, socklen_t* n,
           int flags) noexcept {
  if ((flags & ~kTypeFlags) != 0) return -EINVAL;
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, 0, tcp_socket::receive_timeout(file));
  while (turn.w.files[file].listener.head == 0) {
    if ((turn.w.files[file].listener.any_address & dmt::kShutRead) != 0) return -EINVAL;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
  dmt::ListenerState& l = turn.w.files[file].listener;
  const std::uint32_t accepted = l.head;
  const long number = kernel_accept(fd, a, n, flags, turn.w.files[accepted].stream.connector);
  if (number < 0) return static_cast<int>(number);
  l.head = turn.w.files[accepted].chain;
  if (l.head == 0) l.tail = 0;
  --l.queued;
  turn.w.files[accepted].chain = 0;
  turn.w.files[accepted].nonblocking = (flags & SOCK_NONBLOCK) != 0;
  dmt::refresh_readiness(turn.w, file, false);
  // Wakes threads in connect that wait for a place in the queue.
  dmt::signal(turn.w, turn.w.files[file].object, dmt::kAll);
  return bind_new(turn, number, accepted);
}

int name(int fd, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* n) noexcept {
  if (!of_peer) return static_cast<int>(raw_syscall(SYS_getsockname, fd, a, n));
  const dmt::ConnectionState& c = segment->files[file].connection;
  if (c.connecting) return -ENOTCONN;
  if (a == nullptr || n == nullptr) return -EFAULT;
  const std::string_view path = dmt::socket_path(*segment, c);
  struct {
    sockaddr_un address;
    char end;  // for a path that fills the whole buffer
  } full{};
  full.address.sun_family = AF_UNIX;
  std::memcpy(full.address.sun_path, path.data(), path.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  std::memcpy(a, &full, std::min(*n, size));
  *n = size;
  return 0;
}

int refuse_credentials() noexcept {
  static bool reported = false;
  if (first_time(reported)) {
    Message() << "credentials and descriptors do not pass to a unix socket of the host: refused";
  }
  return -EOPNOTSUPP;
}

}  // namespace crane::unix_socket
