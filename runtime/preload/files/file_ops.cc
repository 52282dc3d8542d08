// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/file_ops.h"

#include <fcntl.h>

#include <iterator>

#include "dmt/datagrams.h"
#include "dmt/file_kinds.h"
#include "runtime/preload/files/counter.h"
#include "runtime/preload/sockets/dsock.h"
#include "runtime/preload/sockets/ksock.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/vsock.h"
#include "runtime/preload/terminals/terminal.h"

namespace crane {
namespace {

// --- read and write ------------------------------------------------------------------------------

ssize_t tcp_read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return vsock::receive(turn, fd, file, b, 0);
}
ssize_t tcp_write(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return vsock::send(turn, fd, file, b, 0);
}

struct msghdr message_of(const Buffers& b) noexcept {
  struct msghdr m {};
  m.msg_iov = const_cast<struct iovec*>(b.vectors);
  m.msg_iovlen = b.count;
  return m;
}
template <auto kReceive>
ssize_t read_message(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  struct msghdr m = message_of(b);
  return kReceive(turn, fd, file, m, 0);
}
template <auto kSend>
ssize_t write_message(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return kSend(turn, fd, file, message_of(b), 0);
}

ssize_t both_read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return stream::read(turn, fd, turn.w.files[file].both.reads, b);
}
ssize_t both_write(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return stream::write(turn, fd, turn.w.files[file].both.writes, b);
}

// Of what the kernel never sees: the buffers are the program's to read or write, or EFAULT.
template <auto kRead>
ssize_t checked_read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return are_there(b, is_writable) ? kRead(turn, fd, file, b) : -EFAULT;
}
template <auto kWrite>
ssize_t checked_write(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return are_there(b, is_readable) ? kWrite(turn, fd, file, b) : -EFAULT;
}

ssize_t invalid(Turn&, int, std::uint32_t, const Buffers&) noexcept { return -EINVAL; }
constexpr auto kNoRead = checked_read<invalid>;
constexpr auto kNoWrite = checked_write<invalid>;

// --- FIONREAD ------------------------------------------------------------------------------------

std::int64_t no_bytes(const dmt::Layout&, std::uint32_t) noexcept { return 0; }
std::int64_t kernel_bytes(const dmt::Layout&, std::uint32_t) noexcept { return kKernelKnows; }

std::int64_t connection_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return static_cast<std::int64_t>(dmt::readable_bytes(w, file));
}

std::int64_t datagram_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].datagram.first == 0 ? 0 : dmt::first_datagram(w, file).size;
}

// Of packets we count pages.
std::int64_t stream_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  const dmt::StreamState& s = w.files[file].stream;
  return s.packets ? kKernelKnows : static_cast<std::int64_t>(s.bytes);
}

std::int64_t both_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return static_cast<std::int64_t>(w.files[w.files[file].both.reads].stream.bytes);
}

// --- open again ----------------------------------------------------------------------------------

// For the same end or the other one; O_NONBLOCK is that of the end.
int open_pipe_again(Turn& turn, int fd, const char* path, int flags) noexcept {
  std::uint32_t file = bound_file(fd);
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  if (reads != (turn.w.files[file].kind == FileKind::kPipeRead)) {
    file = turn.w.files[file].stream.peer;
  }
  if (file == 0 || (flags & O_ACCMODE) == O_RDWR) return -ENXIO;
  const long made = raw_syscall(SYS_openat, AT_FDCWD, path, flags & ~O_CREAT, 0);
  if (made < 0) return static_cast<int>(made);
  dmt::add_reference(turn.w, file);
  return bind_new(turn, made, file);
}

int open_random_again(Turn& turn, int fd, const char*, int) noexcept {
  return bind_duplicate(turn, fd, raw_syscall(SYS_dup, fd));
}

// --- the table -----------------------------------------------------------------------------------

constexpr mode_t kPipeMode = S_IFIFO | 0600u, kAnonymousMode = 0600u, kDeviceMode = S_IFCHR | 0666u;
constexpr dev_t kRandomDevice = 0x109;
constexpr long kPipeFlags = O_NONBLOCK | O_DIRECT;

constexpr FileOps kFiles[] = {
    {.kind = FileKind::kFree, .read = kNoRead, .write = kNoWrite, .unread = no_bytes},
    {.kind = FileKind::kSocket,
     .read = refuse<ENOTCONN>,
     .write = tcp_write,
     .unread = no_bytes,
     .socket = &kTcpSocket},
    {.kind = FileKind::kListener,
     .read = refuse<ENOTCONN>,
     .write = tcp_write,
     .unread = no_bytes,
     .socket = &kTcpListener},
    {.kind = FileKind::kConnection,
     .read = tcp_read,
     .write = tcp_write,
     .unread = connection_bytes,
     .socket = &kTcpConnection,
     .shares_placeholder = true},
    {.kind = FileKind::kPipeRead,
     .read = stream::read,
     .write = refuse<EBADF>,
     .unread = stream_bytes,
     .open_again = open_pipe_again,
     .mode = kPipeMode,
     .kernel_flags = kPipeFlags},
    {.kind = FileKind::kPipeWrite,
     .read = refuse<EBADF>,
     .write = stream::write,
     .unread = stream_bytes,
     .open_again = open_pipe_again,
     .mode = kPipeMode,
     .kernel_flags = kPipeFlags},
    {.kind = FileKind::kPipeBoth,
     .read = both_read,
     .write = both_write,
     .unread = both_bytes,
     .mode = kPipeMode},
    {.kind = FileKind::kUnixSocket,
     .read = refuse<EINVAL>,
     .write = refuse<ENOTCONN>,
     .unread = no_bytes,
     .socket = &kUnixSocket},
    {.kind = FileKind::kUnixListener,
     .read = refuse<ENOTCONN>,
     .write = refuse<ENOTCONN>,
     .unread = no_bytes,
     .socket = &kUnixListener},
    {.kind = FileKind::kUnixStream,
     .read = read_message<stream::receive>,
     .write = write_message<stream::send>,
     .unread = stream_bytes,
     .socket = &kUnixStream},
    {.kind = FileKind::kEventFd,
     .read = checked_read<counter::read_count>,
     .write = checked_write<counter::write_event>,
     .unread = no_bytes,
     .mode = kAnonymousMode},
    {.kind = FileKind::kTimerFd,
     .read = checked_read<counter::read_count>,
     .write = kNoWrite,
     .unread = no_bytes,
     .mode = kAnonymousMode},
    {.kind = FileKind::kEpoll,
     .read = kNoRead,
     .write = kNoWrite,
     .unread = no_bytes,
     .mode = kAnonymousMode},
    {.kind = FileKind::kSignalFd,
     .read = checked_read<counter::read_signals>,
     .write = kNoWrite,
     .unread = no_bytes,
     .mode = kAnonymousMode},
    {.kind = FileKind::kRandom,
     .read = checked_read<counter::read_random>,
     .write = checked_write<counter::discard>,
     .unread = no_bytes,
     .open_again = open_random_again,
     .mode = kDeviceMode,
     .device = kRandomDevice,
     .ignores_position = true},
    {.kind = FileKind::kDatagram,
     .read = read_message<dsock::receive>,
     .write = write_message<dsock::send>,
     .unread = datagram_bytes,
     .socket = &kUdpSocket},
    {.kind = FileKind::kProcess, .read = kNoRead, .write = kNoWrite, .unread = no_bytes},
    {.kind = FileKind::kKernelSocket,
     .read = read_message<ksock::receive>,
     .write = write_message<ksock::send>,
     .unread = kernel_bytes,
     .socket = &kKernelSocket},
    {.kind = FileKind::kTerminalMaster,
     .read = terminal::read_master,
     .write = terminal::write,
     .unread = no_bytes,
     .open_again = terminal::open_again},
    {.kind = FileKind::kTerminalLine,
     .read = terminal::read_line,
     .write = terminal::write,
     .unread = no_bytes,
     .open_again = terminal::open_again},
};
static_assert(dmt::has_row_for_each_kind(kFiles), "a kind of file has no row, or not at its place");

}  // namespace

const FileOps& ops_of(const FileRecord& f) noexcept {
  return kFiles[static_cast<std::size_t>(f.kind)];
}

}  // namespace crane
