// SPDX-License-Identifier: Apache-2.0
// splice, tee and vmsplice. Between kernel pipes and plain files the kernel moves as much as the
// counters allow (stream.h). To and from virtual files the bytes are copied.
#include <algorithm>

#include "dmt/file_kind.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane::wrap {
namespace {

constexpr std::size_t kMost = 64 * 1024;

bool is_pipe(const FileRecord* f, FileKind kind) noexcept {
  return f != nullptr && f->kind == kind;
}

WaitPolicy policy_of(const Turn& turn, std::uint32_t file, unsigned flags) noexcept {
  WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  policy.nonblocking = policy.nonblocking || (flags & SPLICE_F_NONBLOCK) != 0;
  return policy;
}

// Moves bytes from a pipe to a pipe; `number` is SYS_splice or SYS_tee.
ssize_t between_pipes(Turn& turn, long number, int in, int out, std::size_t n,
                      unsigned flags) noexcept {
  const std::uint32_t from = bound_file(in), to = bound_file(out);
  if (turn.w.files[from].stream.peer == to) return -EINVAL;
  const std::int64_t there = stream::await_input(turn, in, from, n, policy_of(turn, from, flags));
  if (there <= 0) return there;
  const std::int64_t room = stream::await_room(turn, out, to, policy_of(turn, to, flags));
  if (room < 0) return room;
  const std::size_t wanted =
      std::min({n, static_cast<std::size_t>(there), static_cast<std::size_t>(room)});
  long moved;
  if (number == SYS_tee) {
    moved = raw_syscall(SYS_tee, in, out, wanted, SPLICE_F_NONBLOCK);
  } else {
    moved = raw_syscall(SYS_splice, in, nullptr, out, nullptr, wanted, SPLICE_F_NONBLOCK);
    if (moved > 0) stream::note_read(turn.w, from, static_cast<std::uint64_t>(moved));
  }
  if (moved > 0) stream::note_written(turn.w, to, static_cast<std::uint64_t>(moved));
  return moved;
}

// Reads bytes of the pipe `in` without consuming them: the kernel copies them to a pipe of ours.
long peek_pipe(int in, const Scratch<std::byte>& bytes) noexcept {
  int ours[2];
  long result = raw_syscall(SYS_pipe2, ours, O_CLOEXEC | O_NONBLOCK);
  if (result < 0) return -ENOMEM;
  result = raw_syscall(SYS_tee, in, ours[1], bytes.size(), SPLICE_F_NONBLOCK);
  if (result > 0) result = raw_syscall(SYS_read, ours[0], bytes.data(), result);
  for (const int end : ours) raw_syscall(SYS_close, end);
  return result;
}

// Writes without waiting.
ssize_t write_now(Turn& turn, int out, std::uint32_t to, const Buffers& b) noexcept {
  FileRecord& f = turn.w.files[to];
  const bool was = f.nonblocking;
  f.nonblocking = true;
  const ssize_t put = ops_of(turn, to).write(turn, out, to, b);
  f.nonblocking = was;
  return put;
}

// Moves bytes from a pipe to a virtual file. Bytes that `out` does not accept stay in the pipe, so
// nothing may happen between the peek and the write.
ssize_t out_to_virtual(Turn& turn, int in, int out, std::size_t n, unsigned flags) noexcept {
  const std::uint32_t from = bound_file(in), to = bound_file(out);
  for (;;) {
    const std::int64_t there =
        stream::await_input(turn, in, from, std::min(n, kMost), policy_of(turn, from, flags));
    if (there <= 0) return there;
    const Scratch<std::byte> bytes(static_cast<std::size_t>(there));
    const long seen = peek_pipe(in, bytes);
    if (seen <= 0) return seen;
    const struct iovec some = {bytes.data(), static_cast<std::size_t>(seen)};
    const ssize_t put = write_now(turn, out, to, {&some, 1, some.iov_len});
    if (put > 0) {
      const struct iovec taken = {bytes.data(), static_cast<std::size_t>(put)};
      return stream::read(turn, in, from, {&taken, 1, taken.iov_len});
    }
    const WaitPolicy policy =
        tcp_socket::wait_policy_of(turn.w, to, 0, tcp_socket::send_timeout(to));
    if (put != -EAGAIN || policy.nonblocking) return put;
    const int error = await_change(turn, out, to, policy);
    if (error < 0) return error;
    if (bound_file(in) != from) return -EBADF;
  }
}

// Moves bytes from a pipe to a plain or virtual file.
ssize_t out_of_pipe(Turn& turn, int in, int out, off64_t* at, std::size_t n,
                    unsigned flags) noexcept {
  const std::uint32_t from = bound_file(in);
  if (!is_plain(out)) return at != nullptr ? -ESPIPE : out_to_virtual(turn, in, out, n, flags);
  const std::int64_t there =
      stream::await_input(turn, in, from, std::min(n, kMost), policy_of(turn, from, flags));
  if (there <= 0) return there;
  const auto wanted = std::min(n, static_cast<std::size_t>(there));
  note_written(out);
  const long moved = raw_syscall(SYS_splice, in, nullptr, out, at, wanted, SPLICE_F_NONBLOCK);
  if (moved > 0) {
    stream::note_read(turn.w, from, static_cast<std::uint64_t>(moved));
    notify::by_descriptor(turn.w, out, IN_MODIFY);
  }
  return moved;
}

// Moves bytes from a plain or virtual file to a pipe.
ssize_t into_pipe(Turn& turn, int in, off64_t* at, int out, std::size_t n,
                  unsigned flags) noexcept {
  const std::uint32_t from = bound_file(in), to = bound_file(out);
  if (from != 0 && at != nullptr) return -ESPIPE;
  const std::int64_t room = stream::await_room(turn, out, to, policy_of(turn, to, flags));
  if (room < 0) return room;
  const std::size_t wanted = std::min({n, static_cast<std::size_t>(room), kMost});
  if (from == 0) {
    const long moved = raw_syscall(SYS_splice, in, at, out, nullptr, wanted, SPLICE_F_NONBLOCK);
    if (moved > 0) {
      stream::note_written(turn.w, to, static_cast<std::uint64_t>(moved));
      notify::by_descriptor(turn.w, in, IN_ACCESS);
    }
    return moved;
  }
  const Scratch<std::byte> bytes(wanted);
  const struct iovec all = {bytes.data(), wanted};
  const ssize_t got = ops_of(turn, from).read(turn, in, from, {&all, 1, all.iov_len});
  if (got <= 0) return got;
  const struct iovec some = {bytes.data(), static_cast<std::size_t>(got)};
  return stream::write(turn, out, to, {&some, 1, some.iov_len});
}

constexpr unsigned kKnownFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

}  // namespace

ssize_t splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t n, unsigned flags) {
  if (is_plain(in) && is_plain(out)) return real::splice(in, in_at, out, out_at, n, flags);
  Turn turn(Op::splice, Turn::kCancellationPoint);
  if (n == 0) return finish(turn, 0);
  if ((flags & ~kKnownFlags) != 0) return finish(turn, -EINVAL);
  if (!is_open(in) || !is_open(out)) return finish(turn, -EBADF);
  const bool reads = is_pipe(bound_record(in), FileKind::kPipeRead);
  const bool writes = is_pipe(bound_record(out), FileKind::kPipeWrite);
  if ((is_pipe(bound_record(in), FileKind::kPipeWrite)) ||
      (is_pipe(bound_record(out), FileKind::kPipeRead))) {
    return finish(turn, -EBADF);
  }
  if ((reads && in_at != nullptr) || (writes && out_at != nullptr)) return finish(turn, -ESPIPE);
  if (reads && writes) return finish(turn, between_pipes(turn, SYS_splice, in, out, n, flags));
  if (reads) return finish(turn, out_of_pipe(turn, in, out, out_at, n, flags));
  if (writes) return finish(turn, into_pipe(turn, in, in_at, out, n, flags));
  return finish(turn, -EINVAL);
}

ssize_t tee(int in, int out, size_t n, unsigned flags) {
  if (is_plain(in) && is_plain(out)) return real::tee(in, out, n, flags);
  Turn turn(Op::tee, Turn::kCancellationPoint);
  if (n == 0) return finish(turn, 0);
  if ((flags & ~kKnownFlags) != 0) return finish(turn, -EINVAL);
  if (!is_open(in) || !is_open(out)) return finish(turn, -EBADF);
  const bool pipes = is_pipe(bound_record(in), FileKind::kPipeRead) &&
                     is_pipe(bound_record(out), FileKind::kPipeWrite);
  if (!pipes) return finish(turn, -EINVAL);
  return finish(turn, between_pipes(turn, SYS_tee, in, out, n, flags));
}

ssize_t vmsplice(int fd, const struct iovec* v, size_t n, unsigned flags) {
  if (is_plain(fd)) return real::vmsplice(fd, v, n, flags);
  Turn turn(Op::vmsplice, Turn::kCancellationPoint);
  const std::uint32_t file = bound_file(fd);
  const FileKind kind = turn.w.files[file].kind;
  if (!dmt::is_pipe_end(kind)) return finish(turn, -EBADF);
  Buffers b;
  const int bad = make_buffers(v, n, b);
  if (bad < 0) return finish(turn, bad);
  const bool reads = kind == FileKind::kPipeRead;
  FileRecord& f = turn.w.files[file];
  const bool was = f.nonblocking;
  f.nonblocking = was || (flags & SPLICE_F_NONBLOCK) != 0;
  const ssize_t result = reads ? stream::read(turn, fd, file, b) : stream::write(turn, fd, file, b);
  turn.w.files[file].nonblocking = was;
  return finish(turn, result);
}

}  // namespace crane::wrap
