// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/stream.h"

#include <algorithm>

#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/rights.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane::stream {
namespace {

constexpr std::size_t kAtomicBytes = 4096;  // PIPE_BUF

dmt::StreamState& state(dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].stream;
}

std::uint64_t initial_capacity(const FileRecord& f) noexcept {
  if (f.kind == FileKind::kUnixStream) return kUnixCapacity;
  return f.stream.size != 0 ? f.stream.size : kPipeCapacity;
}

// Repeats a kernel call that found less than our table counts: the kernel will catch up.
template <typename Call>
long with_kernel(int fd, short events, Call call) noexcept {
  for (;;) {
    const long result = call();
    if (result == -EINTR) continue;
    if (result != -EAGAIN) return result;
    struct pollfd p = {fd, events, 0};
    raw_syscall(SYS_poll, &p, 1, -1);
  }
}

bool keeps_messages(const FileRecord& f) noexcept {
  return f.kind == FileKind::kUnixStream && f.port != SOCK_STREAM;
}

// Returns how much a read may take, once there is data or the end; or a negative error.
std::int64_t readable(Turn& turn, int fd, std::uint32_t file, std::size_t wanted,
                      const WaitPolicy& policy) noexcept {
  for (;;) {
    const FileRecord& f = turn.w.files[file];
    const dmt::StreamState& s = f.stream;
    const bool at_end = s.peer == 0 || s.peer_shut_write || s.shut_read;
    const bool whole = keeps_messages(f) || s.packets;
    if (at_end || (s.bytes > 0 && whole)) return static_cast<std::int64_t>(wanted);
    if (s.bytes > 0) return static_cast<std::int64_t>(std::min<std::uint64_t>(s.bytes, wanted));
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
}

// A message weighs one byte more than it has, so that an empty message is visible.
std::uint64_t weight_of(const FileRecord& f, std::uint64_t n) noexcept {
  if (f.stream.packets) return (n + kAtomicBytes - 1) / kAtomicBytes * kAtomicBytes;
  return n + (keeps_messages(f) ? 1 : 0);
}

// Accounts for `bytes` that were read: the writer has space again.
void consumed(dmt::Layout& w, std::uint32_t file, std::uint64_t bytes) noexcept {
  dmt::StreamState& s = state(w, file);
  const std::uint64_t n = std::min(weight_of(w.files[file], bytes), s.bytes);
  s.bytes -= n;
  s.taken += n;
  dmt::refresh_readiness(w, file, false);
  if (s.peer == 0) return;
  dmt::StreamState& writer = state(w, s.peer);
  // An edge for the writer; Linux raises one for each message that is consumed from a unix socket.
  const bool is_drained = s.bytes == 0 && w.files[file].kind == FileKind::kUnixStream;
  const bool was_full = s.bytes + n >= writer.capacity;
  if (s.bytes == 0) writer.capacity = initial_capacity(w.files[s.peer]);
  dmt::refresh_readiness(w, s.peer, was_full || is_drained);
  // A writer may wait for more room than makes the pipe writable (small writes are kept whole).
  dmt::signal(w, w.files[s.peer].object, dmt::kAll);
}

void produced(dmt::Layout& w, std::uint32_t file, std::uint64_t n) noexcept {
  const std::uint32_t peer = state(w, file).peer;
  if (peer != 0) {
    state(w, peer).bytes += weight_of(w.files[file], n);
    dmt::refresh_readiness(w, peer, true);
  }
  dmt::refresh_readiness(w, file, false);
}

// The kernel's buffer is full although ours is not (many small messages). This happens alike on
// every replica, because each kernel got the same calls. The buffer now counts as full.
void found_full(dmt::Layout& w, std::uint32_t file) noexcept {
  dmt::StreamState& s = state(w, file);
  s.capacity = std::max<std::uint64_t>(state(w, s.peer).bytes, 1);
  dmt::refresh_readiness(w, file, false);
}

bool is_broken(const dmt::Layout& w, const dmt::StreamState& s) noexcept {
  return s.peer == 0 || s.shut_write || w.files[s.peer].stream.shut_read;
}

std::size_t space(const dmt::Layout& w, const dmt::StreamState& s) noexcept {
  const std::uint64_t used = w.files[s.peer].stream.bytes;
  return used < s.capacity ? s.capacity - used : 0;
}

// Returns how many of `left` bytes may go now: all or none where Linux keeps writes whole.
std::size_t sendable(const dmt::Layout& w, const FileRecord& f, std::size_t left) noexcept {
  const std::size_t room = space(w, f.stream);
  if (keeps_messages(f)) {
    const bool empty = w.files[f.stream.peer].stream.bytes == 0;
    return left <= room || empty ? left : 0;
  }
  if (f.stream.packets) return std::min(left, room / kAtomicBytes * kAtomicBytes);
  if (f.kind == FileKind::kPipeWrite && left <= kAtomicBytes && left > room) return 0;
  return std::min(left, room);
}

// The loop of all writes: `call(vectors, count)` makes the kernel call.
template <typename Call>
ssize_t write_all(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers,
                  const WaitPolicy& policy, bool quiet, Call call) noexcept {
  Cursor cursor(buffers);
  const Scratch<struct iovec> vectors(buffers.count);
  std::size_t done = 0;
  bool sent_empty = false;
  for (;;) {
    const FileRecord& f = turn.w.files[file];
    if (is_broken(turn.w, f.stream)) {
      if (done > 0) return static_cast<ssize_t>(done);
      const bool datagrams = f.kind == FileKind::kUnixStream && f.port == SOCK_DGRAM;
      if (datagrams && f.stream.peer == 0 && !f.stream.shut_write) return -ECONNREFUSED;
      if (!quiet) raise_virtually(turn, SIGPIPE);
      return -EPIPE;
    }
    const std::size_t n = sendable(turn.w, f, buffers.total - done);
    if (n > 0 || (buffers.total == 0 && !sent_empty)) {
      const long result = call(vectors.data(), cursor.clip(n, vectors.data()));
      if (result < 0 && result != -EAGAIN) return done > 0 ? static_cast<ssize_t>(done) : result;
      sent_empty = true;
      if (result >= 0) {
        cursor.skip(static_cast<std::size_t>(result));
        done += static_cast<std::size_t>(result);
        produced(turn.w, file, static_cast<std::uint64_t>(result));
      } else {
        found_full(turn.w, file);
      }
    }
    if (done == buffers.total) return static_cast<ssize_t>(done);
    if (n > 0 && space(turn.w, turn.w.files[file].stream) > 0) continue;
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return done > 0 ? static_cast<ssize_t>(done) : error;
  }
}

bool carries_rights(const struct msghdr& message) noexcept {
  bool found = false;
  each_rights(message, [&](const Rights&) { found = true; });
  return found;
}

}  // namespace

// --- rights ------------------------------------------------------------------------------------

bool has_room_for_rights(const dmt::Layout& w, const struct msghdr& message) noexcept {
  constexpr std::size_t kMost = 253 * 2;  // the kernel refuses more than SCM_MAX_FD rights
  if (w.scheduler.files_used + kMost < dmt::kFilesMax) return true;
  std::size_t count = 0;
  each_rights(message, [&](const Rights& rights) { count += rights.count(); });
  return count == 0 || count > kMost ||
         dmt::has_room_for_files(w, static_cast<std::uint32_t>(count));
}

// Records that the message's descriptors are on their way to the other end.
void note_sent_rights(Turn& turn, std::uint32_t to, const struct msghdr& message) noexcept {
  each_rights(message, [&](const Rights& rights) {
    for (std::size_t i = 0; i < rights.count(); ++i) {
      const dmt::StreamState& s = state(turn.w, to);
      // The position of the message's first byte in all that was ever sent to that end.
      const bool streams = turn.w.files[to].kind == FileKind::kUnixStream;
      const std::uint64_t place = streams ? s.taken + s.bytes : 0;
      const bool last = i + 1 == rights.count();
      (void)dmt::send_right(turn.w, own_slot(), to, bound_file(rights.at(i)), last, place);
    }
  });
}

// Binds the descriptors that the kernel has just installed.
void bind_received_rights(Turn& turn, std::uint32_t file, struct msghdr& message) noexcept {
  each_rights(message, [&](const Rights& rights) {
    dmt::Right right{false, false, 0};
    for (std::size_t i = 0; i < rights.count(); ++i) {
      const int fd = rights.at(i);
      right = dmt::receive_right(turn.w, file);
      bind_plain(turn, fd);
      if (right.found && right.file != 0) bind_new(turn, fd, right.file);
    }
    // The control buffer was too small for all of them: the kernel closed the others.
    while (right.found && !right.last) {
      right = dmt::receive_right(turn.w, file);
      if (right.file != 0) dmt::drop_reference(turn.w, right.file);
    }
  });
}

// Binds the descriptors that the kernel has installed for a peek; the message keeps its own.
void bind_peeked_rights(Turn& turn, std::uint32_t file, struct msghdr& message) noexcept {
  each_rights(message, [&](const Rights& rights) {
    std::uint32_t envelope = turn.w.files[file].rights;
    for (std::size_t i = 0; i < rights.count(); ++i) {
      const int fd = rights.at(i);
      bind_plain(turn, fd);
      if (envelope == 0) continue;
      const auto passed = static_cast<std::uint32_t>(turn.w.files[envelope].counter.count);
      envelope = turn.w.files[envelope].chain;
      if (passed == 0) continue;
      dmt::add_reference(turn.w, passed);
      bind_new(turn, fd, passed);
    }
  });
}

void drop_rights_before(dmt::Layout& w, std::uint32_t file, std::uint64_t place) noexcept {
  while (w.files[file].rights != 0 && dmt::place_of_right(w, file) < place) {
    const dmt::Right right = dmt::receive_right(w, file);
    if (right.file != 0) dmt::drop_reference(w, right.file);
  }
}

void clear_error(dmt::Layout& w, std::uint32_t file) noexcept {
  state(w, file).reset = false;
  dmt::refresh_readiness(w, file, false);
}

// --- ends ---------------------------------------------------------------------------------------

void connect_ends(dmt::Layout& w, std::uint32_t a, std::uint32_t b,
                  std::uint64_t capacity) noexcept {
  for (const auto& [one, other] : {std::pair{a, b}, std::pair{b, a}}) {
    w.files[one].stream = {};
    w.files[one].stream.peer = other;
    w.files[one].stream.capacity = capacity;
    w.files[one].stream.name = w.files[a].object;
  }
  dmt::refresh_readiness(w, a, true);
  dmt::refresh_readiness(w, b, true);
}

ssize_t read(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  if (buffers.total == 0) return 0;
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  const std::int64_t limit = readable(turn, fd, file, buffers.total, policy);
  if (limit < 0) return limit;
  const Scratch<struct iovec> vectors(buffers.count);
  const std::size_t count = Cursor(buffers).clip(static_cast<std::size_t>(limit), vectors.data());
  const long result =
      with_kernel(fd, POLLIN, [&] { return raw_syscall(SYS_readv, fd, vectors.data(), count); });
  if (result > 0) consumed(turn.w, file, static_cast<std::uint64_t>(result));
  return result;
}

ssize_t write(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  if (buffers.total == 0) return 0;
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  return write_all(turn, fd, file, buffers, policy, false,
                   [fd](const struct iovec* v, std::size_t count) {
                     return raw_syscall(SYS_writev, fd, v, count);
                   });
}

ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& message,
                int flags) noexcept {
  Buffers buffers;
  const int bad = make_buffers(message.msg_iov, message.msg_iovlen, buffers);
  if (bad < 0) return bad;
  const FileRecord& f = turn.w.files[file];
  const bool whole = keeps_messages(f);
  if (buffers.total == 0 && !whole && message.msg_controllen == 0) return 0;
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, flags, tcp_socket::receive_timeout(file));
  // A call continues until so many bytes have arrived; MSG_PEEK takes what it finds.
  const std::size_t enough =
      (flags & MSG_PEEK) != 0 || whole ? 0
      : (flags & MSG_WAITALL) != 0
          ? buffers.total
          : std::min<std::size_t>(tcp_socket::low_water(file), buffers.total);
  Cursor cursor(buffers);
  const Scratch<struct iovec> vectors(buffers.count);
  std::size_t done = 0;
  for (;;) {
    const std::int64_t limit = readable(turn, fd, file, buffers.total - done, policy);
    if (limit < 0) return done > 0 ? static_cast<ssize_t>(done) : limit;
    struct msghdr part = message;
    part.msg_iov = vectors.data();
    part.msg_iovlen = cursor.clip(static_cast<std::size_t>(limit), vectors.data());
    // MSG_TRUNC is the only way to learn the length of a message that was cut.
    const int kernel_flags = (flags & ~(MSG_DONTWAIT | MSG_WAITALL)) | (whole ? MSG_TRUNC : 0);
    const long result =
        with_kernel(fd, POLLIN, [&] { return raw_syscall(SYS_recvmsg, fd, &part, kernel_flags); });
    if (result == -ECONNRESET) clear_error(turn.w, file);
    if (result < 0) return done > 0 ? static_cast<ssize_t>(done) : result;
    if ((flags & MSG_PEEK) != 0) {
      bind_peeked_rights(turn, file, part);
    } else {
      consumed(turn.w, file, static_cast<std::uint64_t>(result));
      bind_received_rights(turn, file, part);
      // Drops the rights of messages that the reader had no room to receive.
      drop_rights_before(turn.w, file, state(turn.w, file).taken);
    }
    message.msg_namelen = part.msg_namelen;
    message.msg_controllen = part.msg_controllen;
    message.msg_flags = part.msg_flags;
    const auto got = static_cast<std::size_t>(result);
    if (whole) {
      return static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? got : std::min(got, buffers.total));
    }
    done += got;
    cursor.skip(got);
    if (got == 0 || done >= enough) return static_cast<ssize_t>(done);
  }
}

ssize_t send(Turn& turn, int fd, std::uint32_t file, const struct msghdr& message,
             int flags) noexcept {
  Buffers buffers;
  const int bad = make_buffers(message.msg_iov, message.msg_iovlen, buffers);
  if (bad < 0) return bad;
  if (message.msg_namelen != 0 && message.msg_name != nullptr) return -EISCONN;
  const WaitPolicy policy =
      tcp_socket::wait_policy_of(turn.w, file, flags, tcp_socket::send_timeout(file));
  const int kernel_flags = flags | MSG_DONTWAIT | MSG_NOSIGNAL;
  bool first = true;
  const bool rights = carries_rights(message);
  return write_all(turn, fd, file, buffers, policy, (flags & MSG_NOSIGNAL) != 0,
                   [&](struct iovec* v, std::size_t count) {
                     struct msghdr part = message;
                     part.msg_iov = v;
                     part.msg_iovlen = count;
                     // Control data goes with the first bytes only.
                     if (!first) part.msg_controllen = 0;
                     if (first && rights && !has_room_for_rights(turn.w, message)) {
                       return -long{ETOOMANYREFS};
                     }
                     const long result = raw_syscall(SYS_sendmsg, fd, &part, kernel_flags);
                     if (result >= 0 && first && rights) {
                       note_sent_rights(turn, state(turn.w, file).peer, message);
                     }
                     if (result >= 0) first = false;
                     return result;
                   });
}

int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return -EINVAL;
  dmt::StreamState& s = state(turn.w, file);
  const long result = raw_syscall(SYS_shutdown, fd, how);
  if (result < 0) return static_cast<int>(result);
  if (how != SHUT_WR) s.shut_read = true;
  if (how != SHUT_RD) {
    s.shut_write = true;
    if (s.peer != 0) state(turn.w, s.peer).peer_shut_write = true;
  }
  for (const std::uint32_t end : {file, s.peer}) {
    if (end == 0) continue;
    dmt::refresh_readiness(turn.w, end, true);
    // A writer that waits for room gets no rising edge, so it is woken directly.
    dmt::signal(turn.w, turn.w.files[end].object, dmt::kAll);
  }
  return 0;
}

// --- splice and tee ------------------------------------------------------------------------------

std::int64_t await_input(Turn& turn, int fd, std::uint32_t file, std::size_t wanted,
                         const WaitPolicy& policy) noexcept {
  if (state(turn.w, file).packets) return -EINVAL;  // a splice would join packets
  const std::int64_t limit = readable(turn, fd, file, wanted, policy);
  if (limit < 0) return limit;
  // At the end there may still be bytes that no wrapper counted.
  const auto counted = static_cast<std::int64_t>(state(turn.w, file).bytes);
  return std::min(limit, counted);
}

std::int64_t await_room(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept {
  if (state(turn.w, file).packets) return -EINVAL;
  for (;;) {
    const dmt::StreamState& s = state(turn.w, file);
    if (is_broken(turn.w, s)) {
      raise_virtually(turn, SIGPIPE);
      return -EPIPE;
    }
    if (const std::size_t room = space(turn.w, s); room > 0) return static_cast<std::int64_t>(room);
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
}

void note_read(dmt::Layout& w, std::uint32_t file, std::uint64_t n) noexcept {
  consumed(w, file, n);
}
void note_written(dmt::Layout& w, std::uint32_t file, std::uint64_t n) noexcept {
  produced(w, file, n);
}

// --- pipes of packets ----------------------------------------------------------------------------

int set_packets(dmt::Layout& w, std::uint32_t file, bool on) noexcept {
  dmt::StreamState& writer = state(w, file);
  if (writer.packets == on) return 0;
  if (writer.peer == 0) return 0;  // there is no reader
  dmt::StreamState& reader = state(w, writer.peer);
  if (reader.bytes != 0) return -EINVAL;
  reader.packets = writer.packets = on;
  return 0;
}

// --- the size of a pipe --------------------------------------------------------------------------

int pipe_size(const FileRecord& f) noexcept { return static_cast<int>(initial_capacity(f)); }

int set_pipe_size(Turn& turn, int fd, std::uint32_t file, long wanted) noexcept {
  constexpr long kPage = 4096, kMost = 1 << 20;
  if (wanted < 0 || wanted > (1l << 31)) return -EINVAL;
  std::uint64_t size = kPage;
  while (size < static_cast<std::uint64_t>(wanted)) size *= 2;
  if (size > kMost && raw_syscall(SYS_geteuid) != 0) return -EPERM;
  FileRecord& f = turn.w.files[file];
  const std::uint32_t peer = f.stream.peer;
  FileRecord& reader = f.kind == FileKind::kPipeRead || peer == 0 ? f : turn.w.files[peer];
  if (reader.stream.bytes > size) return -EBUSY;
  // The kernel's pipe is larger, as kPipeKernelBytes is.
  const std::uint64_t kernels =
      std::min<std::uint64_t>(4 * size, std::max<std::uint64_t>(size, kMost));
  const long set =
      raw_syscall(SYS_fcntl, fd, F_SETPIPE_SZ, std::max<std::uint64_t>(kernels, kPipeKernelBytes));
  if (set < 0) return static_cast<int>(set);
  for (const std::uint32_t end : {file, peer}) {
    if (end == 0) continue;
    turn.w.files[end].stream.size = turn.w.files[end].stream.capacity = size;
    dmt::refresh_readiness(turn.w, end, true);
  }
  return static_cast<int>(size);
}

}  // namespace crane::stream
