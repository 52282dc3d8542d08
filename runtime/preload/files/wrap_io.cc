// SPDX-License-Identifier: Apache-2.0
// read, write and similar calls. Calls on plain descriptors go to the kernel. They take a turn only
// when other threads run at the same time and could change the file (parallel mode, writes:
// O_APPEND, rule 10).
#include "dmt/base/log.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane::wrap {
namespace {

constexpr std::size_t kCopyChunk = 32 * 1024;

// Which result shows that the file was written: bytes were moved, or the call returned 0.
enum class Success : std::uint8_t { kBytes, kZero };

constexpr bool is_done(Success by, ssize_t result) noexcept {
  return by == Success::kBytes ? result > 0 : result == 0;
}

// `source`: the plain file that is read, or -1.
template <typename Call>
auto plain_write(Op op, int fd, Call call, Success by = Success::kBytes, int source = -1) noexcept {
  if (is_parallel()) {
    return at_turn(op, [=]() CRANE_REQUIRES_TURN {
      note_written(fd);
      const auto result = call();
      if (is_done(by, result)) {
        if (source >= 0) notify::by_descriptor(*segment, source, IN_ACCESS);
        notify::by_descriptor(*segment, fd, IN_MODIFY);
      }
      return result;
    });
  }
  note_written(fd);
  const auto result = call();
  if (!is_done(by, result) || !notify::needs_late_report(IN_MODIFY | IN_ACCESS)) return result;
  if (source >= 0) notify::after_read(op, source, result);
  if (notify::needs_late_report(IN_MODIFY)) notify::report_later(op, fd, IN_MODIFY);
  return result;
}

ssize_t read_vectors(Turn& turn, int fd, const struct iovec* v, int n) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return -EBADF;
  if (n < 0) return -EINVAL;
  Buffers b;
  const int bad = make_buffers(v, static_cast<std::size_t>(n), b);
  return bad < 0 ? bad : ops_of(turn, file).read(turn, fd, file, b);
}

ssize_t write_vectors(Turn& turn, int fd, const struct iovec* v, int n) noexcept {
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return -EBADF;
  if (n < 0) return -EINVAL;
  Buffers b;
  const int bad = make_buffers(v, static_cast<std::size_t>(n), b);
  const ssize_t result = bad < 0 ? bad : ops_of(turn, file).write(turn, fd, file, b);
  if (is_parallel()) turn.yield();  // rule 23
  return result;
}

// pread on a file that has no positions.
ssize_t positioned(Op op, int fd, const struct iovec* v, int n) noexcept {
  Turn turn(op);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return finish(turn, -EBADF);
  if (!ops_of(turn, file).ignores_position) return finish(turn, -ESPIPE);
  return finish(turn, read_vectors(turn, fd, v, n));
}

ssize_t not_seekable(Op op) noexcept {
  Turn turn(op);
  return finish(turn, -ESPIPE);
}

// Copies bytes of `in` (plain) from `position`, and advances it, to a file that is not a client's
// connection.
ssize_t copy_in_chunks(Turn& turn, int out, std::uint32_t file, int in, off_t& position,
                       std::size_t n) noexcept {
  const Scratch<std::byte> chunk(std::min(n, kCopyChunk));
  std::size_t done = 0;
  while (done < n) {
    const std::size_t wanted = std::min(n - done, chunk.size());
    const long got = raw_syscall(SYS_pread64, in, chunk.data(), wanted, position);
    if (got <= 0) {
      if (done == 0 && got < 0) return got;
      break;
    }
    const struct iovec v = {chunk.data(), static_cast<std::size_t>(got)};
    const ssize_t put = ops_of(turn, file).write(turn, out, file, {&v, 1, v.iov_len});
    if (put < 0) {
      if (done == 0) return put;
      break;
    }
    done += static_cast<std::size_t>(put);
    position += put;
    if (put < got) break;
  }
  return static_cast<ssize_t>(done);
}

// Copies bytes of `in` (plain) to `out` (bound), from *at or the file's own position.
ssize_t copy_to_bound(Turn& turn, int out, int in, off_t* at, std::size_t n) noexcept {
  const std::uint32_t file = bound_file(out);
  if (file == 0) return -EBADF;
  off_t position = at != nullptr ? *at : raw_syscall(SYS_lseek, in, 0, SEEK_CUR);
  if (position < 0) return at != nullptr ? -EINVAL : position;
  const ssize_t done = tcp_socket::takes_files(turn.w.files[file])
                           ? tcp_socket::send_file(turn, out, file, in, position, n)
                           : copy_in_chunks(turn, out, file, in, position, n);
  if (done < 0) return done;
  if (done > 0) notify::by_descriptor(turn.w, in, IN_ACCESS);
  if (at != nullptr) {
    *at = position;
  } else {
    raw_syscall(SYS_lseek, in, position, SEEK_SET);
  }
  return done;
}

// Copies bytes of `in` to `out`, at *in_at and *out_at or the files' own positions.
ssize_t copy_by_hand(int in, off64_t* in_at, int out, off64_t* out_at, std::size_t n) noexcept {
  const Scratch<std::byte> chunk(std::min(n, kCopyChunk));
  std::size_t done = 0;
  while (done < n) {
    const std::size_t wanted = std::min(n - done, chunk.size());
    const long got = in_at != nullptr ? raw_syscall(SYS_pread64, in, chunk.data(), wanted, *in_at)
                                      : raw_syscall(SYS_read, in, chunk.data(), wanted);
    if (got == 0) break;
    const auto size = static_cast<std::size_t>(got < 0 ? 0 : got);
    const long put = got < 0 ? got
                     : out_at != nullptr
                         ? raw_syscall(SYS_pwrite64, out, chunk.data(), size, *out_at)
                         : raw_syscall(SYS_write, out, chunk.data(), size);
    if (put < got && in_at == nullptr && got > 0) {  // bytes not written count as unread
      raw_syscall(SYS_lseek, in, (put < 0 ? 0 : put) - got, SEEK_CUR);
    }
    if (put < 0) return done == 0 ? put : static_cast<ssize_t>(done);
    if (in_at != nullptr) *in_at += put;
    if (out_at != nullptr) *out_at += put;
    done += static_cast<std::size_t>(put);
    if (put < got) break;
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

ssize_t read(int fd, void* b, size_t n) {
  if (is_plain(fd)) return notify::after_read(Op::read, fd, real::read(fd, b, n));
  Turn turn(Op::read, Turn::kCancellationPoint);
  const struct iovec v = {b, n};
  return finish(turn, read_vectors(turn, fd, &v, 1));
}
ssize_t __read_chk(int fd, void* b, size_t n, size_t room) {
  fortify::check_room(n, room);
  return wrap::read(fd, b, n);
}

ssize_t readv(int fd, const struct iovec* v, int n) {
  if (is_plain(fd)) return notify::after_read(Op::readv, fd, real::readv(fd, v, n));
  Turn turn(Op::readv, Turn::kCancellationPoint);
  return finish(turn, read_vectors(turn, fd, v, n));
}

ssize_t pread(int fd, void* b, size_t n, off_t at) {
  if (is_plain(fd)) return notify::after_read(Op::pread, fd, real::pread(fd, b, n, at));
  const struct iovec v = {b, n};
  return positioned(Op::pread, fd, &v, 1);
}
ssize_t preadv(int fd, const struct iovec* v, int n, off_t at) {
  return is_plain(fd) ? notify::after_read(Op::preadv, fd, real::preadv(fd, v, n, at))
                      : positioned(Op::preadv, fd, v, n);
}
ssize_t preadv64(int fd, const struct iovec* v, int n, off64_t at) {
  return wrap::preadv(fd, v, n, at);
}
ssize_t pread64(int fd, void* b, size_t n, off64_t at) { return wrap::pread(fd, b, n, at); }
ssize_t __pread_chk(int fd, void* b, size_t n, off_t at, size_t room) {
  fortify::check_room(n, room);
  return wrap::pread(fd, b, n, at);
}
ssize_t __pread64_chk(int fd, void* b, size_t n, off64_t at, size_t room) {
  fortify::check_room(n, room);
  return wrap::pread(fd, b, n, at);
}

ssize_t write(int fd, const void* b, size_t n) {
  if (is_plain(fd)) {
    return plain_write(Op::write, fd, [=] {
      const struct iovec all = {const_cast<void*>(b), n};
      return write_with_room({fd, &all, 1}, [=] { return real::write(fd, b, n); });
    });
  }
  Turn turn(Op::write, Turn::kCancellationPoint);
  const struct iovec v = {const_cast<void*>(b), n};
  return finish(turn, write_vectors(turn, fd, &v, 1));
}

ssize_t writev(int fd, const struct iovec* v, int n) {
  if (is_plain(fd)) {
    return plain_write(Op::writev, fd, [=] {
      return write_with_room({fd, v, n}, [=] { return real::writev(fd, v, n); });
    });
  }
  Turn turn(Op::writev, Turn::kCancellationPoint);
  return finish(turn, write_vectors(turn, fd, v, n));
}

ssize_t pwrite(int fd, const void* b, size_t n, off_t at) {
  if (!is_plain(fd)) return not_seekable(Op::pwrite);
  return plain_write(Op::pwrite, fd, [=] {
    const struct iovec all = {const_cast<void*>(b), n};
    return write_with_room({fd, &all, 1, at}, [=] { return real::pwrite(fd, b, n, at); });
  });
}
ssize_t pwrite64(int fd, const void* b, size_t n, off64_t at) { return wrap::pwrite(fd, b, n, at); }
ssize_t pwritev(int fd, const struct iovec* v, int n, off_t at) {
  if (!is_plain(fd)) return not_seekable(Op::pwritev);
  return plain_write(Op::pwritev, fd, [=] {
    return write_with_room({fd, v, n, at}, [=] { return real::pwritev(fd, v, n, at); });
  });
}
ssize_t pwritev64(int fd, const struct iovec* v, int n, off64_t at) {
  return wrap::pwritev(fd, v, n, at);
}

// At the file's own position these are readv and writev, also for files without positions.
ssize_t preadv2(int fd, const struct iovec* v, int n, off_t at, int flags) {
  if (is_plain(fd)) {
    return notify::after_read(Op::preadv2, fd, real::preadv2(fd, v, n, at, flags));
  }
  if (flags != 0) return fail(EOPNOTSUPP);
  return at == -1 ? wrap::readv(fd, v, n) : not_seekable(Op::preadv2);
}
ssize_t preadv64v2(int fd, const struct iovec* v, int n, off64_t at, int flags) {
  return wrap::preadv2(fd, v, n, at, flags);
}
ssize_t pwritev2(int fd, const struct iovec* v, int n, off_t at, int flags) {
  if (is_plain(fd)) {
    return plain_write(Op::pwritev2, fd, [=] {
      return write_with_room({fd, v, n, at, flags},
                             [=] { return real::pwritev2(fd, v, n, at, flags); });
    });
  }
  if (flags != 0) return fail(EOPNOTSUPP);
  return at == -1 ? wrap::writev(fd, v, n) : not_seekable(Op::pwritev2);
}
ssize_t pwritev64v2(int fd, const struct iovec* v, int n, off64_t at, int flags) {
  return wrap::pwritev2(fd, v, n, at, flags);
}

// --- space in files: the size and the time change, but no bytes ---------------------------------

// Supports only modes that all file systems have; programs work without the others.
int fallocate(int fd, int how, off_t at, off_t n) {
  const bool punches = how == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
  if (is_plain(fd) && how != 0 && how != FALLOC_FL_KEEP_SIZE && !punches) return fail(EOPNOTSUPP);
  return plain_write(
      Op::fallocate, fd,
      [=] { return with_room([=] { return real::fallocate(fd, how, at, n); }, fd); },
      Success::kZero);
}
int fallocate64(int fd, int how, off64_t at, off64_t n) { return wrap::fallocate(fd, how, at, n); }
int posix_fallocate(int fd, off_t at, off_t n) {
  return plain_write(
      Op::posix_fallocate, fd,
      [=] {
        return -static_cast<int>(
            with_room_raw([=] { return long{-real::posix_fallocate(fd, at, n)}; }, fd));
      },
      Success::kZero);
}
int posix_fallocate64(int fd, off64_t at, off64_t n) { return wrap::posix_fallocate(fd, at, n); }

// The kernel's call does not work between some file systems.
ssize_t copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t n,
                        unsigned flags) {
  if (!is_plain(in) || !is_plain(out)) return fail(EINVAL);
  return plain_write(
      Op::copy_file_range, out,
      [=]() -> ssize_t {
        const ssize_t done =
            with_room([=] { return real::copy_file_range(in, in_at, out, out_at, n, flags); }, out);
        const bool refused = done < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == ENOSYS);
        if (!refused) return done;
        const ssize_t copied =
            with_room_raw([=] { return copy_by_hand(in, in_at, out, out_at, n); }, out);
        return copied < 0 ? fail(static_cast<int>(-copied)) : copied;
      },
      Success::kBytes, in);
}

// Holes and their units depend on the file system, so Crane reports that no file has holes.
off_t lseek(int fd, off_t at, int from) {
  struct stat s {};
  if ((from != SEEK_DATA && from != SEEK_HOLE) || !is_plain(fd) ||
      raw_syscall(SYS_fstat, fd, &s) != 0 || !S_ISREG(s.st_mode)) {
    return real::lseek(fd, at, from);
  }
  if (at < 0 || at >= s.st_size) return fail(ENXIO);
  return real::lseek(fd, from == SEEK_DATA ? at : s.st_size, SEEK_SET);
}
off64_t lseek64(int fd, off64_t at, int from) { return wrap::lseek(fd, at, from); }

ssize_t sendfile(int out, int in, off_t* at, size_t n) {
  if (is_plain(out) && is_plain(in)) {
    return plain_write(
        Op::sendfile, out,
        [=] { return with_room([=] { return real::sendfile(out, in, at, n); }, out); },
        Success::kBytes, in);
  }
  Turn turn(Op::sendfile, Turn::kCancellationPoint);
  // As Linux: refuses a source that cannot be mapped or has no position.
  if (!is_plain(in)) return finish(turn, at != nullptr ? -ESPIPE : -EINVAL);
  const ssize_t result = finish(turn, copy_to_bound(turn, out, in, at, n));
  if (is_parallel()) turn.yield();
  return result;
}
ssize_t sendfile64(int out, int in, off64_t* at, size_t n) {
  return wrap::sendfile(out, in, at, n);
}

}  // namespace crane::wrap
