// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/fifo.h"

#include <cstring>

#include "dmt/base/log.h"
#include "dmt/blocks.h"
#include "dmt/inodes.h"
#include "dmt/outbound.h"
#include "dmt/socket_directories.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane::fifo {
namespace {

// Objects of threads that wait in open, for a reader and for a writer.
constexpr std::uint64_t kOpening = (1ull << 61) | (3ull << 56);
constexpr std::uint64_t kLow = (1ull << 55) - 1;

std::uint64_t opening_object(std::uint64_t name, FileKind awaited) noexcept {
  const std::uint64_t side = awaited == FileKind::kPipeRead ? 0 : 1;
  return kOpening | ((name & kLow) ^ side);
}

std::uint32_t end_of(const dmt::Layout& w, std::uint64_t name, FileKind kind) noexcept {
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const FileRecord& f = w.files[i];
    if (f.kind == kind && f.stream.fifo == name) return i;
  }
  return 0;
}

void connect(dmt::Layout& w, std::uint32_t own_end, std::uint32_t other) noexcept {
  w.files[own_end].stream.peer = other;
  w.files[other].stream.peer = own_end;
  w.files[own_end].port = w.files[other].port = dmt::kFifoMet;
  dmt::refresh_readiness(w, own_end, true);
  dmt::refresh_readiness(w, other, true);
}

// A pipe that no thread of the schedule has open counts as new. The kernel's pipe may still exist
// with its contents: it lasts as long as a process that had it open and is ending.
void empty(int fd) noexcept {
  const Scratch<std::byte> bytes(4096);
  while (raw_syscall(SYS_read, fd, bytes.data(), bytes.size()) > 0) {
  }
}

// Takes a reference to this end, and creates the end if no process has it open.
std::uint32_t take_end(Turn& turn, int fd, std::uint64_t name, FileKind kind, bool nonblocking,
                       std::uint32_t other) noexcept {
  dmt::Layout& w = turn.w;
  if (const std::uint32_t known = end_of(w, name, kind); known != 0) {
    dmt::add_reference(w, known);
    return known;
  }
  const std::uint32_t file = dmt::create_file(w, own_slot(), kind);
  if (file == 0) return 0;
  FileRecord& f = w.files[file];
  f.nonblocking = nonblocking;
  f.port = dmt::kFifoAlone;
  f.stream.fifo = name;
  f.stream.capacity = stream::kPipeCapacity;
  if (kind == FileKind::kPipeRead && other == 0) {
    empty(fd);
  } else if (kind == FileKind::kPipeRead) {
    // Bytes written before a former reader closed are still there (dmt/files.cc).
    f.stream.bytes = w.files[other].stream.bytes;
    w.files[other].stream.bytes = 0;
  }
  dmt::refresh_readiness(w, file, false);
  if (other != 0) connect(w, file, other);
  return file;
}

// Warns that a process outside the server cannot open the other end.
void log_waiting(const char* path) noexcept {
  static bool reported = false;
  if (!first_time(reported)) return;
  Message() << "open: " << path << ": waits until a process of the server opens this FIFO's other"
            << " end: processes outside do not count; to read from one, the server must open"
            << " a FIFO that it did not make, in a directory of --bind, by its whole path";
}

// Returns 0 when another thread has opened the awaited end.
int await_opening(Turn& turn, std::uint64_t object) noexcept {
  const dmt::WakeReason why = turn.wait(object);
  if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kRestarts)) return -EINTR;
  return why == dmt::WakeReason::kInterrupted ? -EAGAIN : 0;
}

// Opens the kernel's end. Opening for writing needs a reader, unless the call waits for one. Crane
// decides whether there is one, because the kernel's reader may be a process that has ended.
long open_in_kernel(Turn& turn, int directory, const char* path, int flags,
                    std::uint64_t name) noexcept {
  for (;;) {
    const long fd = raw_syscall(SYS_openat, directory, path, flags | O_NONBLOCK, 0);
    if (fd < 0 && fd != -ENXIO) return fd;
    const bool writes = (flags & O_ACCMODE) == O_WRONLY;
    if (!writes || end_of(turn.w, name, FileKind::kPipeRead) != 0) return fd;
    if (fd >= 0) raw_syscall(SYS_close, fd);
    if ((flags & O_NONBLOCK) != 0) return -ENXIO;
    log_waiting(path);
    const int error = await_opening(turn, opening_object(name, FileKind::kPipeRead));
    if (error == -EINTR) return error;
  }
}

// --- FIFOs of the host ---------------------------------------------------------------------------

// Whether the writers are outside, so that the leader's node reads the FIFO.
bool is_read_from_host(Turn& turn, const char* path, int access,
                       const struct stat& status) noexcept {
  const std::size_t size = std::strlen(path);
  return access == O_RDONLY && size <= kSocketPathBytes &&
         dmt::is_in_socket_directory(turn.w, path) &&
         !dmt::is_made_by_server(turn.w, status.st_dev, status.st_ino);
}

// Opens a pipe without a writer, which provides the descriptor's number.
long open_placeholder(int flags) noexcept {
  int ends[2];
  const int kept = flags & (O_CLOEXEC | O_NONBLOCK);
  const long result = raw_syscall(SYS_pipe2, ends, kept);
  if (result < 0) return result;
  raw_syscall(SYS_close, ends[1]);
  return ends[0];
}

// Waits until a writer has written or closed; its open alone is not visible.
int await_writer(Turn& turn, int fd, std::uint32_t file) noexcept {
  dmt::ConnectionState& c = turn.w.files[file].connection;
  while (c.connecting) {
    if (const int error = await_change(turn, fd, file, {}); error < 0) return error;
  }
  const int error = c.socket_error;
  c.socket_error = 0;
  return error == ECONNREFUSED ? -EACCES : -error;  // --outbound does not allow it
}

int open_of_host(Turn& turn, const char* path, int flags) noexcept {
  if (const long error = raw_syscall(SYS_faccessat2, AT_FDCWD, path, R_OK, AT_EACCESS); error < 0) {
    return static_cast<int>(error);
  }
  if (!dmt::fits(turn.w, kSocketPathBytes)) return -ENFILE;
  const long fd = open_placeholder(flags);
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), FileKind::kUnixSocket);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].nonblocking = (flags & O_NONBLOCK) != 0;
  dmt::begin_fifo_open(turn.w, file, path);
  const int number = bind_new(turn, fd, file);
  if (number < 0 || (flags & O_NONBLOCK) != 0) return number;
  const int error = await_writer(turn, number, file);
  if (error == 0 || error == -EBADF) return error == 0 ? number : error;
  close_descriptor(turn, number);
  return error;
}

// Opens both ends at once, as Linux allows. The call does not wait, and threads that wait for one
// of the ends continue.
int open_both(Turn& turn, int directory, const char* path, int flags,
              const struct stat& status) noexcept {
  const int follow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  const std::uint64_t name = held_inode_number(turn, {directory, path, follow}, status);
  const long fd = raw_syscall(SYS_openat, directory, path, flags, 0);
  if (fd < 0) return static_cast<int>(fd);
  raw_syscall(SYS_fcntl, fd, F_SETPIPE_SZ, stream::kPipeKernelBytes);
  const bool nonblocking = (flags & O_NONBLOCK) != 0;
  const int number = static_cast<int>(fd);
  if (!nonblocking) raw_syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);  // for empty()
  const std::uint32_t reads = take_end(turn, number, name, FileKind::kPipeRead, nonblocking,
                                       end_of(turn.w, name, FileKind::kPipeWrite));
  if (!nonblocking) raw_syscall(SYS_fcntl, fd, F_SETFL, flags);
  const std::uint32_t writes =
      reads == 0 ? 0 : take_end(turn, number, name, FileKind::kPipeWrite, nonblocking, reads);
  const std::uint32_t file =
      writes == 0 ? 0 : dmt::create_file(turn.w, own_slot(), FileKind::kPipeBoth);
  if (file == 0) {
    if (reads != 0) dmt::drop_reference(turn.w, reads);
    if (writes != 0) dmt::drop_reference(turn.w, writes);
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  turn.w.files[file].nonblocking = nonblocking;
  dmt::join_ends(turn.w, file, reads, writes);
  dmt::signal(turn.w, opening_object(name, FileKind::kPipeRead), dmt::kAll);
  dmt::signal(turn.w, opening_object(name, FileKind::kPipeWrite), dmt::kAll);
  return bind_new(turn, fd, file);
}

}  // namespace

bool may_be(const char* path, int flags) noexcept {
  if (path == nullptr || (flags & (O_PATH | O_DIRECTORY)) != 0) return false;
  // /dev/fd/N and the like are not FIFOs to open.
  return !begins_with(path, "/dev/") && !begins_with(path, "/proc/");
}

bool opens_at_once(int flags) noexcept {
  return (flags & (O_ACCMODE | O_NONBLOCK | O_CREAT | O_TRUNC)) == (O_RDONLY | O_NONBLOCK);
}

bool find(int directory, const char* path, int flags, struct stat& status) noexcept {
  const int follow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  return raw_syscall(SYS_newfstatat, directory, path, &status, follow) == 0 &&
         S_ISFIFO(status.st_mode);
}

bool is_one(int fd, struct stat& status) noexcept {
  return raw_syscall(SYS_fstat, fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

ssize_t read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  const ssize_t result = tcp_socket::receive(turn, fd, file, b, 0);
  return result == -ECONNRESET ? -EIO : result;  // its leader has gone
}

int open(Turn& turn, int directory, const char* path, int flags,
         const struct stat& status) noexcept {
  constexpr int kCreates = O_CREAT | O_EXCL;
  if ((flags & kCreates) == kCreates) return -EEXIST;
  const int access = flags & O_ACCMODE;
  if (access == O_RDWR) return open_both(turn, directory, path, flags & ~kCreates, status);
  if (access != O_RDONLY && access != O_WRONLY) return -EINVAL;
  if (is_read_from_host(turn, path, access, status)) return open_of_host(turn, path, flags);
  const bool nonblocking = (flags & O_NONBLOCK) != 0;
  const FileKind kind = access == O_RDONLY ? FileKind::kPipeRead : FileKind::kPipeWrite;
  const FileKind awaited = access == O_RDONLY ? FileKind::kPipeWrite : FileKind::kPipeRead;
  const int follow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  const std::uint64_t name = held_inode_number(turn, {directory, path, follow}, status);
  const long fd = open_in_kernel(turn, directory, path, flags & ~kCreates, name);
  if (fd < 0) return static_cast<int>(fd);
  raw_syscall(SYS_fcntl, fd, F_SETPIPE_SZ, stream::kPipeKernelBytes);
  const std::uint32_t other = end_of(turn.w, name, awaited);
  const std::uint32_t file = take_end(turn, static_cast<int>(fd), name, kind, nonblocking, other);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  if (!nonblocking) raw_syscall(SYS_fcntl, fd, F_SETFL, flags & ~(kCreates | O_NONBLOCK));
  const int number = bind_new(turn, fd, file);
  if (number < 0) return number;
  dmt::signal(turn.w, opening_object(name, kind), dmt::kAll);
  if (kind == FileKind::kPipeWrite || other != 0 || nonblocking) return number;
  log_waiting(path);
  int error;
  while ((error = await_opening(turn, opening_object(name, awaited))) == -EAGAIN) {
    if (turn.w.files[file].stream.peer != 0) break;
  }
  if (error == -EINTR) {
    close_descriptor(turn, number);
    return error;
  }
  return number;
}

}  // namespace crane::fifo
