// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/file_ops.h"

#include <fcntl.h>

#include <iterator>

#include "dmt/datagrams.h"
#include "dmt/file_kind.h"
#include "dmt/inotify.h"
#include "dmt/urgent.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/files/counter.h"
#include "runtime/preload/files/fifo.h"
#include "runtime/preload/sockets/kernel_socket.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/sockets/tcp_socket.h"
#include "runtime/preload/sockets/udp_socket.h"
#include "runtime/preload/terminals/terminal.h"

namespace crane {
namespace {

// --- read and write ------------------------------------------------------------------------------

ssize_t tcp_read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return tcp_socket::receive(turn, fd, file, b, 0);
}
ssize_t tcp_write(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept {
  return tcp_socket::send(turn, fd, file, b, 0);
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

// The kernel never sees these buffers, so the check that the program may access them (EFAULT) is
// here.
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
  return static_cast<std::int64_t>(dmt::unread_bytes(w.files[file].connection));
}

std::int64_t datagram_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return w.files[file].datagram.first == 0 ? 0 : dmt::first_datagram(w, file).size;
}

// Packets are counted in pages, so the kernel must report their bytes.
std::int64_t stream_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  const dmt::StreamState& s = w.files[file].stream;
  return s.packets ? kKernelKnows : static_cast<std::int64_t>(s.bytes);
}

std::int64_t both_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return static_cast<std::int64_t>(w.files[w.files[file].both.reads].stream.bytes);
}

std::int64_t event_bytes(const dmt::Layout& w, std::uint32_t file) noexcept {
  return dmt::event_bytes(w.files[file]);
}

// --- open again ----------------------------------------------------------------------------------

// Opens the same end or the other one; O_NONBLOCK belongs to the end.
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

constexpr mode_t kPipe = S_IFIFO | 0600u, kSocket = S_IFSOCK | 0777u, kAnonymous = 0600u,
                 kDevice = S_IFCHR | 0666u;
constexpr dev_t kRandomDevice = 0x109;
constexpr long kPipeFlags = O_NONBLOCK | O_DIRECT;

constexpr FileOps kFiles[] = {
    {FileKind::kFree, kNoRead, kNoWrite, no_bytes, &kNoSocket, kSocket},
    {FileKind::kSocket, refuse<ENOTCONN>, tcp_write, no_bytes, &kTcpSocket, kSocket},
    {FileKind::kListener, refuse<ENOTCONN>, tcp_write, no_bytes, &kTcpListener, kSocket},
    {FileKind::kConnection, tcp_read, tcp_write, connection_bytes, &kTcpConnection, kSocket,
     refuse<ENXIO>, O_NONBLOCK, true},
    {FileKind::kPipeRead, stream::read, refuse<EBADF>, stream_bytes, &kNoSocket, kPipe,
     open_pipe_again, kPipeFlags},
    {FileKind::kPipeWrite, refuse<EBADF>, stream::write, stream_bytes, &kNoSocket, kPipe,
     open_pipe_again, kPipeFlags},
    {FileKind::kPipeBoth, both_read, both_write, both_bytes, &kNoSocket, kPipe},
    {FileKind::kUnixSocket, refuse<EINVAL>, refuse<ENOTCONN>, no_bytes, &kUnixSocket, kSocket},
    {FileKind::kUnixListener, refuse<ENOTCONN>, refuse<ENOTCONN>, no_bytes, &kUnixListener,
     kSocket},
    {FileKind::kUnixStream, read_message<stream::receive>, write_message<stream::send>,
     stream_bytes, &kUnixStream, kSocket},
    {FileKind::kEventFd, checked_read<counter::read_count>, checked_write<counter::write_event>,
     no_bytes, &kNoSocket, kAnonymous},
    {FileKind::kTimerFd, checked_read<counter::read_count>, kNoWrite, no_bytes, &kNoSocket,
     kAnonymous},
    {FileKind::kEpoll, kNoRead, kNoWrite, no_bytes, &kNoSocket, kAnonymous},
    {FileKind::kSignalFd, checked_read<counter::read_signals>, kNoWrite, no_bytes, &kNoSocket,
     kAnonymous},
    {FileKind::kRandom, checked_read<counter::read_random>, checked_write<counter::discard>,
     no_bytes, &kNoSocket, kDevice, open_random_again, O_NONBLOCK, false, kRandomDevice, true},
    {FileKind::kDatagram, read_message<udp_socket::receive>, write_message<udp_socket::send>,
     datagram_bytes, &kUdpSocket, kSocket},
    {FileKind::kProcess, kNoRead, kNoWrite, no_bytes, &kNoSocket, kSocket},
    {FileKind::kKernelSocket, read_message<kernel_socket::receive>,
     write_message<kernel_socket::send>, kernel_bytes, &kKernelSocket, kSocket},
    {FileKind::kTerminalMaster, terminal::read_master, terminal::write, no_bytes, &kNoSocket,
     kSocket, terminal::open_again},
    {FileKind::kTerminalLine, terminal::read_line, terminal::write, no_bytes, &kNoSocket, kSocket,
     terminal::open_again},
    {FileKind::kInotify, checked_read<notify::read_events>, refuse<EBADF>, event_bytes, &kNoSocket,
     kAnonymous},
};
static_assert(dmt::has_row_for_each_kind(kFiles), "a kind of file has no row, or a misplaced one");

constexpr FileOps kFifoOfHost = {FileKind::kConnection, fifo::read, refuse<EBADF>,
                                 connection_bytes,      &kNoSocket, kPipe};

}  // namespace

const FileOps& ops_of(const FileRecord& f) noexcept {
  if (dmt::is_host_fifo(f)) return kFifoOfHost;
  return kFiles[static_cast<std::size_t>(f.kind)];
}

}  // namespace crane
