// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/tcp_socket.h"

#include <netinet/in.h>

#include <algorithm>

#include "dmt/base/log.h"
#include "dmt/connections.h"
#include "dmt/loopback.h"
#include "dmt/outbound.h"
#include "dmt/processes.h"
#include "dmt/urgent.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/unix_socket.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::tcp_socket {
namespace {

// Buffers up to this total go into the output ring as one record.
constexpr std::size_t kGatherMax = 16 * 1024;

dmt::ConnectionState& connection(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].connection;
}

// True after a reset, and for a connection within the server that both sides have ended.
bool is_over(const dmt::ConnectionState& c) noexcept {
  return c.reset || (c.loopback && c.fin_received && c.shut_write);
}

bool at_end(const dmt::ConnectionState& c) noexcept { return c.fin_received || c.shut_read; }

// Returns the error of a reset connection once; afterwards the connection is at its end.
int take_error(dmt::Layout& w, std::uint32_t file) noexcept {
  dmt::ConnectionState& c = connection(w, file);
  const int error = c.socket_error;
  c.socket_error = 0;
  if (error != 0) dmt::refresh_readiness(w, file, false);
  return error;
}

// Consumes bytes without copying them out (MSG_TRUNC on TCP).
std::size_t discard(dmt::Layout& w, std::uint32_t file, std::size_t size) noexcept {
  std::byte scratch[512];
  std::size_t done = 0;
  while (done < size) {
    const std::size_t n =
        dmt::read_connection(w, file, scratch, std::min(size - done, sizeof scratch), false);
    if (n == 0) break;
    done += n;
  }
  return done;
}

// Moves available bytes into the cursor's buffers.
std::size_t take(dmt::Layout& w, std::uint32_t file, Cursor& cursor, std::size_t size,
                 int flags) noexcept {
  const bool peek = (flags & MSG_PEEK) != 0;
  if ((flags & MSG_TRUNC) != 0 && !peek) return discard(w, file, size);
  std::size_t done = 0;
  while (done < size) {
    const Cursor::Piece p = cursor.piece(size - done);
    if (p.size == 0) break;
    const std::size_t n = dmt::read_connection(w, file, p.data, p.size, peek);
    cursor.advance(n);
    done += n;
    // A peek would see the same bytes again, so it fills only the first buffer.
    if (n < p.size || peek) break;
  }
  return done;
}

// `urgent`: the last of `limit` bytes is urgent.
std::size_t put(dmt::Layout& w, std::uint32_t file, Cursor& cursor, const Buffers& buffers,
                std::size_t limit, bool urgent) noexcept {
  if (buffers.count > 1 && limit <= kGatherMax) {
    const Scratch<std::byte> gathered(limit);
    const std::size_t n = cursor.gather(gathered.data(), limit);
    return dmt::write_connection(w, file, gathered.data(), n, urgent);
  }
  std::size_t done = 0;
  while (done < limit) {
    const Cursor::Piece p = cursor.piece(limit - done);
    if (p.size == 0) break;
    const bool is_last = done + p.size == limit;
    const std::size_t n = dmt::write_connection(w, file, p.data, p.size, urgent && is_last);
    cursor.advance(n);
    done += n;
  }
  return done;
}

ssize_t broken_pipe(Turn& turn, std::uint32_t file, int flags) noexcept {
  int error = take_error(turn.w, file);
  if (error == 0) error = EPIPE;
  if (error == EPIPE && (flags & MSG_NOSIGNAL) == 0) raise_virtually(turn, SIGPIPE);
  return -error;
}

// Returns the error of a failed connect once.
int take_error_of_socket(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].kind == FileKind::kSocket ? take_connect_error(w, file) : 0;
}

int not_connected(dmt::Layout& w, std::uint32_t file) noexcept {
  const int error = take_error_of_socket(w, file);
  return error != 0 ? -error : -ENOTCONN;
}

ssize_t receive_urgent(dmt::Layout& w, std::uint32_t file, const Buffers& buffers,
                       int flags) noexcept {
  const FileKind kind = w.files[file].kind;
  if (kind != FileKind::kConnection) return kind == FileKind::kSocket ? -EINVAL : -ENOTCONN;
  const int byte = dmt::take_urgent(w, file, (flags & MSG_PEEK) != 0);
  if (byte < 0 || buffers.total == 0) return std::min(byte, 0);
  Cursor cursor(buffers);
  if ((flags & MSG_TRUNC) == 0) *cursor.piece(1).data = static_cast<std::byte>(byte);
  return 1;
}

// Handles a read at the urgent mark. Signals (SIGURG) are delivered first, and an urgent byte
// outside the stream is dropped. 0, or a negative error number.
int advance_to_mark(Turn& turn, int fd, std::uint32_t file, int flags,
                    const WaitPolicy& policy) noexcept {
  while (dmt::signal_deliverable(turn.w, own_slot())) {
    const int error = take_interruption(turn, fd, file, policy);
    if (error < 0) return error;
    if (turn.w.files[file].kind != FileKind::kConnection) return not_connected(turn.w, file);
  }
  const bool drops = dmt::is_at_hidden_byte(connection(turn.w, file)) && (flags & MSG_PEEK) == 0;
  if (drops) dmt::drop_hidden_byte(turn.w, file);
  return 0;
}

// As not_connected(), for send.
int unconnected(Turn& turn, std::uint32_t file, int flags) noexcept {
  if (const int error = take_error_of_socket(turn.w, file); error != 0) return -error;
  if ((flags & MSG_NOSIGNAL) == 0) raise_virtually(turn, SIGPIPE);
  return turn.w.files[file].kind == FileKind::kSocket ? -EPIPE : -ENOTCONN;
}

// A socket of IPv6 shows IPv4 addresses as mapped.
void show_as(std::uint16_t domain, dmt::ConnectionState& c) noexcept {
  if (domain != AF_INET6) return;
  addresses::map_to_ipv6(c.peer);
  addresses::map_to_ipv6(c.local);
}

int show_name(const FileRecord& f, VirtualAddress address, struct sockaddr* a,
              socklen_t* size) noexcept {
  if (address.family == 0) address.family = f.port;  // it was not bound
  if (f.port == AF_INET6) addresses::map_to_ipv6(address);
  addresses::to_sockaddr(address, a, size);
  return 0;
}

// Crane knows only two devices; a socket that is not bound to lo is reached from the network.
std::uint16_t device_bit(std::uint32_t file) noexcept {
  return is_of_loopback(file) ? dmt::kLoopbackDevice : std::uint16_t{0};
}

void set_bound(FileRecord& f, std::uint32_t file, const VirtualAddress& address) noexcept {
  f.listener.bound = address;
  f.listener.any_address =
      static_cast<std::uint16_t>((is_wildcard(address) ? dmt::kWildcardAddress : 0) |
                                 (reuses_port(file) ? dmt::kReusesPort : 0) |
                                 (is_only_ipv6(file) ? dmt::kOnlyIpv6 : 0) | device_bit(file));
}

// shutdown() of a listener: it becomes a bound socket again, and threads that wait in accept get
// EINVAL.
void stop_listening(dmt::Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  dmt::close_listener(w, file);
  const dmt::ListenerState before = f.listener;
  f.listener = {};
  f.listener.bound = before.bound;
  f.listener.any_address = before.any_address;
  f.kind = FileKind::kSocket;
  dmt::refresh_readiness(w, file, true);
}

// Waits for the leader to report whether the port is free outside: 0 or minus the errno of bind.
int await_port(Turn& turn, std::uint32_t file, bool elsewhere) noexcept {
  FileRecord& f = turn.w.files[file];
  const std::uint64_t question = dmt::ask_for_port(turn.w, own_slot(), file, elsewhere);
  if (question == 0) return 0;
  const std::uint64_t object = f.object;
  const auto is_here = [&f, object] { return f.kind == FileKind::kSocket && f.object == object; };
  while (is_here() && f.listener.question == question) {
    // Signals do not interrupt bind: handlers run, and the wait continues.
    if (turn.wait(question) == dmt::WakeReason::kInterrupted) (void)turn.interrupted(true);
  }
  return is_here() ? -f.listener.answer : -EBADF;  // another thread may have closed it
}

// The kernel chooses a port that is free on the machine. Crane proposes ports to the leader until
// one is free there, too.
int bind_to_chosen(Turn& turn, std::uint32_t file, VirtualAddress address) noexcept {
  constexpr unsigned kTries = 256;  // each is an entry of the log
  FileRecord& f = turn.w.files[file];
  for (unsigned refused_before = 0; refused_before < kTries; ++refused_before) {
    address.port = dmt::take_listening_port(turn.w, refused_before);
    if (address.port == 0) break;
    set_bound(f, file, address);
    f.listener.any_address |= dmt::kChosenPort;
    const int refused = await_port(turn, file, true);
    if (refused == 0 || refused == -EBADF) return refused;
    f.listener.bound = {};
    if (refused != -EADDRINUSE) return refused;
  }
  return -EADDRINUSE;
}

}  // namespace

// --- sockets -------------------------------------------------------------------------------------

int create(Turn& turn, int domain, int type, int protocol) noexcept {
  constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int kind = type & ~kFlags;
  constexpr int kMostKinds = SOCK_PACKET;
  if (kind < 0 || kind > kMostKinds) return -EINVAL;
  const bool of_transport = kind == SOCK_STREAM || kind == SOCK_DGRAM;
  if (of_transport && (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) &&
      protocol != (kind == SOCK_STREAM ? int{IPPROTO_TCP} : int{IPPROTO_UDP})) {
    return -EPROTONOSUPPORT;
  }
  if (kind != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP)) {
    static bool reported = false;
    if (first_time(reported)) {
      Message() << "socket: domain " << domain << ", type " << kind << ", protocol " << protocol
                << ": only TCP is replicated; the call fails";
    }
    return kind == SOCK_RAW || kind == SOCK_PACKET ? -EPERM : -EAFNOSUPPORT;
  }
  return new_socket(turn, FileKind::kSocket, domain, type);
}

int bind(Turn& turn, int, std::uint32_t file, const struct sockaddr* a, socklen_t size) noexcept {
  FileRecord& f = turn.w.files[file];
  VirtualAddress address;
  const int error = addresses::from_sockaddr(a, size, address, f.port);
  if (error < 0) return error;
  if (f.kind != FileKind::kSocket || f.listener.bound.family != 0) return -EINVAL;
  if (address.family != f.port) return -EAFNOSUPPORT;
  if (addresses::unmap(address) && is_only_ipv6(file)) return -EINVAL;
  if (address.port == 0) return bind_to_chosen(turn, file, address);
  set_bound(f, file, address);
  if (!dmt::may_listen(turn.w, file)) {
    f.listener.bound = {};
    return -EADDRINUSE;
  }
  const bool elsewhere =
      !is_wildcard(address) && !interfaces::is_own(address) && !binds_anywhere(file);
  const int refused = await_port(turn, file, elsewhere);
  if (refused < 0 && refused != -EBADF) f.listener.bound = {};
  return refused;
}

int listen(Turn& turn, int, std::uint32_t file, int backlog) noexcept {
  FileRecord& f = turn.w.files[file];
  if (f.listener.bound.family == 0) {
    VirtualAddress any{};
    any.family = f.port;
    if (const int refused = bind_to_chosen(turn, file, any); refused < 0) return refused;
  }
  if (f.kind == FileKind::kSocket) {  // bound, perhaps, before its device was set
    constexpr unsigned kOthers = ~static_cast<unsigned>(dmt::kLoopbackDevice);
    f.listener.any_address =
        static_cast<std::uint16_t>((f.listener.any_address & kOthers) | device_bit(file));
  }
  const bool listening =
      dmt::start_listening(turn.w, file, static_cast<std::uint32_t>(std::max(backlog, 0)));
  return listening ? 0 : -EADDRINUSE;
}

int accept(Turn& turn, int fd, std::uint32_t file, struct sockaddr* a, socklen_t* size,
           int flags) noexcept {
  if ((flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0) return -EINVAL;
  FileRecord& f = turn.w.files[file];
  const WaitPolicy policy = wait_policy_of(turn.w, file, 0, receive_timeout(file));
  while (f.listener.head == 0) {
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
    if (f.kind != FileKind::kListener) return -EINVAL;
  }
  // A duplicate of the listener's placeholder serves as placeholder: it is cheaper than a new
  // socket.
  const long number =
      raw_syscall(SYS_fcntl, fd, (flags & SOCK_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (number < 0) return static_cast<int>(number);
  if (const int error = check_range(number); error < 0) return error;  // it stays in the queue
  const std::uint32_t accepted = dmt::accept_connection(turn.w, file);
  FileRecord& c = turn.w.files[accepted];
  c.nonblocking = (flags & SOCK_NONBLOCK) != 0;
  c.port = f.port;
  c.connection.reported_connected = true;
  show_as(f.port, c.connection);
  inherit_options(turn.w, file, accepted);
  const VirtualAddress peer = c.connection.peer;
  const int result = bind_new(turn, number, accepted);
  if (result >= 0) addresses::to_sockaddr(peer, a, size);
  return result;
}

int shutdown(Turn& turn, int, std::uint32_t file, int how) noexcept {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  FileRecord& f = turn.w.files[file];
  if (f.kind == FileKind::kListener) {
    if (how != SHUT_WR) stop_listening(turn.w, file);
    return 0;
  }
  if (f.kind != FileKind::kConnection || is_over(f.connection)) return -ENOTCONN;
  if (f.connection.connecting) {
    dmt::give_up_connect(turn.w, file);
    return 0;
  }
  if (how != SHUT_WR) dmt::shutdown_read(turn.w, file);
  if (how != SHUT_RD) dmt::shutdown_write(turn.w, file);
  return 0;
}

int name(int, std::uint32_t file, bool of_peer, struct sockaddr* a, socklen_t* size) noexcept {
  if (of_peer) return -ENOTCONN;
  const FileRecord& f = segment->files[file];
  return show_name(f, f.listener.bound, a, size);
}

int connection_name(std::uint32_t file, bool of_peer, struct sockaddr* a,
                    socklen_t* size) noexcept {
  const FileRecord& f = segment->files[file];
  if (of_peer && (is_over(f.connection) || f.connection.connecting)) return -ENOTCONN;
  return show_name(f, of_peer ? f.connection.peer : f.connection.local, a, size);
}

// --- data ----------------------------------------------------------------------------------------

WaitPolicy wait_policy_of(const dmt::Layout& w, std::uint32_t file, int flags,
                          std::int64_t timeout_ns) noexcept {
  WaitPolicy p;
  p.nonblocking = w.files[file].nonblocking || (flags & MSG_DONTWAIT) != 0;
  if (timeout_ns > 0) {
    p.deadline_ns = deadline_after(w, timeout_ns);
    p.restarts = false;
  }
  return p;
}

ssize_t receive(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers,
                int flags) noexcept {
  if ((flags & MSG_OOB) != 0) return receive_urgent(turn.w, file, buffers, flags);
  if (turn.w.files[file].kind != FileKind::kConnection) return not_connected(turn.w, file);
  if ((flags & MSG_ERRQUEUE) != 0) return -EAGAIN;
  if (buffers.total == 0) return 0;
  dmt::ConnectionState& c = connection(turn.w, file);
  const WaitPolicy policy = wait_policy_of(turn.w, file, flags, receive_timeout(file));
  const bool all = (flags & MSG_WAITALL) != 0 && (flags & MSG_PEEK) == 0;
  Cursor cursor(buffers);
  std::size_t done = 0;
  for (;;) {
    if (dmt::is_at_mark(c)) {
      if (done > 0) return static_cast<ssize_t>(done);
      const int error = advance_to_mark(turn, fd, file, flags, policy);
      if (error < 0) return error;
    }
    const std::uint64_t there = dmt::readable_bytes(turn.w, file);
    const std::size_t most = std::min<std::uint64_t>(there, buffers.total - done);
    const std::uint64_t enough = std::min<std::uint64_t>(c.low_water, buffers.total - done);
    const bool is_all = at_end(c) || c.reset || policy.nonblocking || dmt::has_mark(c);
    if (there >= enough || (there > 0 && is_all)) {
      done += take(turn.w, file, cursor, most, flags);
      const bool ends = !all || done == buffers.total || dmt::is_at_mark(c);
      if (ends) return static_cast<ssize_t>(done);
    }
    if (done > 0 && (c.reset || at_end(c))) return static_cast<ssize_t>(done);
    if (c.reset) return -take_error(turn.w, file);
    if (at_end(c)) return 0;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return done > 0 ? static_cast<ssize_t>(done) : error;
    if (turn.w.files[file].kind != FileKind::kConnection) return not_connected(turn.w, file);
  }
}

ssize_t send(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers, int flags) noexcept {
  const FileKind kind = turn.w.files[file].kind;
  if (kind != FileKind::kConnection) return unconnected(turn, file, flags);
  if ((flags & MSG_OOB) != 0 && unix_socket::is_to_host(turn.w.files[file])) return -EOPNOTSUPP;
  dmt::ConnectionState& c = connection(turn.w, file);
  const WaitPolicy policy = wait_policy_of(turn.w, file, flags, send_timeout(file));
  Cursor cursor(buffers);
  std::size_t done = 0;
  for (;;) {
    if (c.reset || c.shut_write) {
      return done > 0 ? static_cast<ssize_t>(done) : broken_pipe(turn, file, flags);
    }
    const std::uint64_t space = dmt::send_space(turn.w, file);
    const std::size_t n = std::min<std::uint64_t>(buffers.total - done, space);
    if (n > 0 && c.loopback && !dmt::has_room_at_other_end(turn.w, n)) {
      return done > 0 ? static_cast<ssize_t>(done) : -ENOBUFS;
    }
    const bool urgent = (flags & MSG_OOB) != 0 && done + n == buffers.total;
    if (n > 0) done += put(turn.w, file, cursor, buffers, n, urgent);
    if (done == buffers.total) return static_cast<ssize_t>(done);
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return done > 0 ? static_cast<ssize_t>(done) : error;
    if (turn.w.files[file].kind != FileKind::kConnection) return unconnected(turn, file, flags);
  }
}

bool takes_files(const FileRecord& f) noexcept {
  return f.kind == FileKind::kConnection && !f.connection.loopback && !dmt::is_host_fifo(f);
}

ssize_t send_file(Turn& turn, int fd, std::uint32_t file, int in, off_t& at,
                  std::size_t size) noexcept {
  dmt::ConnectionState& c = connection(turn.w, file);
  const WaitPolicy policy = wait_policy_of(turn.w, file, 0, send_timeout(file));
  std::size_t done = 0;
  while (done < size) {
    const bool is_broken = c.reset || c.shut_write;
    if (is_broken || dmt::send_space(turn.w, file) == 0) {
      // The end of the file takes precedence over an error of the connection.
      std::byte next;
      const long got = raw_syscall(SYS_pread64, in, &next, sizeof next, at);
      if (done > 0 && (got <= 0 || is_broken)) break;
      if (got <= 0) return got;
      if (is_broken) return broken_pipe(turn, file, 0);
      const int error = await_change(turn, fd, file, policy);
      if (error < 0 && done == 0) return error;
      if (error < 0) break;
      const bool is_there = turn.w.files[file].kind == FileKind::kConnection;
      if (!is_there && done == 0) return unconnected(turn, file, 0);
      if (!is_there) break;
      continue;
    }
    const std::span<std::byte> room = dmt::reserve_written(turn.w, file, size - done);
    const long got = raw_syscall(SYS_pread64, in, room.data(), room.size(), at);
    if (got < 0 && done == 0) return got;
    if (got <= 0) break;
    dmt::commit_written(turn.w, file, room, static_cast<std::size_t>(got));
    done += static_cast<std::size_t>(got);
    at += got;
  }
  return static_cast<ssize_t>(done);
}

}  // namespace crane::tcp_socket
