// SPDX-License-Identifier: Apache-2.0
#include "dmt/file_kind.h"

#include <sys/socket.h>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/datagrams.h"
#include "dmt/files.h"
#include "dmt/inotify.h"
#include "dmt/terminals.h"
#include "dmt/timers.h"

namespace crane::dmt {
namespace {

// --- close ---------------------------------------------------------------------------------------

void close_nothing(Layout&, std::uint32_t) noexcept {}

// Drops the descriptors in flight to this socket.
void drop_rights(Layout& w, std::uint32_t index) noexcept {
  for (Right r = receive_right(w, index); r.found; r = receive_right(w, index)) {
    if (r.file != 0) drop_reference(w, r.file);
  }
}

// Ends the other end's connection to a pipe or unix stream: EOF for readers, EPIPE for writers.
void close_stream(Layout& w, std::uint32_t index) noexcept {
  drop_rights(w, index);
  FileRecord& file = w.files[index];
  const std::uint32_t peer = file.stream.peer;
  if (peer == 0) return;
  file.stream.peer = 0;
  w.files[peer].stream.peer = 0;
  if (file.kind == FileKind::kUnixStream && file.port != SOCK_DGRAM && file.stream.bytes > 0) {
    w.files[peer].stream.reset = true;
  }
  // A named pipe keeps its unread bytes while it has a writer (runtime/preload/files/fifo.cc).
  if (file.stream.fifo != 0 && file.kind == FileKind::kPipeRead) {
    w.files[peer].stream.bytes = file.stream.bytes;
  }
  refresh_readiness(w, peer, true);
}

void close_unix_listener(Layout& w, std::uint32_t index) noexcept {
  FileRecord& file = w.files[index];
  while (file.listener.head != 0) {
    const std::uint32_t queued = file.listener.head;
    file.listener.head = w.files[queued].chain;
    w.files[queued].chain = 0;
    if (const std::uint32_t peer = w.files[queued].stream.peer; peer != 0) {
      w.files[peer].stream.reset = true;
    }
    drop_reference(w, queued);
  }
}

void close_epoll(Layout& w, std::uint32_t file) noexcept {
  while (w.files[file].epoll.items != 0) drop_watch(w, w.files[file].epoll.items);
}

void close_timer(Layout& w, std::uint32_t index) noexcept {
  destroy_timer(w, w.files[index].counter.timer);
}

void close_both(Layout& w, std::uint32_t index) noexcept {
  const BothEnds both = w.files[index].both;
  std::uint32_t* at = &w.files[both.reads].stream.both;
  while (*at != index) {
    CRANE_ASSERT(*at != 0);
    at = &w.files[*at].both.next;
  }
  *at = both.next;
  w.files[both.writes].stream.both = w.files[both.reads].stream.both;
  drop_reference(w, both.writes);
  drop_reference(w, both.reads);
}

// --- readiness -----------------------------------------------------------------------------------

Readiness never_ready(const Layout&, const FileRecord&) noexcept { return 0; }
Readiness always_ready(const Layout&, const FileRecord&) noexcept { return kIn | kOut; }

// As Linux reports for a socket that is neither listening nor connected.
Readiness new_socket_readiness(const Layout&, const FileRecord& f) noexcept {
  return f.listener.connect_error != 0 ? kIn | kOut | kErr | kHup | kRdHup : kOut | kHup;
}

Readiness listener_readiness(const Layout&, const FileRecord& f) noexcept {
  return f.listener.queued > 0 ? kIn : 0;
}

Readiness unix_listener_readiness(const Layout& w, const FileRecord& f) noexcept {
  const bool reads = (f.listener.any_address & kShutRead) == 0;
  const bool writes = (f.listener.any_address & kShutWrite) == 0;
  return listener_readiness(w, f) | (reads ? 0 : kIn | kRdHup) | (reads || writes ? 0 : kHup);
}

Readiness kernel_socket_readiness(const Layout& w, const FileRecord& f) noexcept {
  return listener_readiness(w, f) | kOut;
}

Readiness read_end_readiness(const Layout&, const FileRecord& f) noexcept {
  const StreamState& s = f.stream;
  return (s.bytes > 0 ? kIn : 0) | (s.peer == 0 && f.port != kFifoAlone ? kHup : 0);
}

Readiness write_end_readiness(const Layout& w, const FileRecord& f) noexcept {
  const StreamState& s = f.stream;
  if (s.peer == 0) return kOut | kErr;
  return w.files[s.peer].stream.bytes < s.capacity ? kOut : 0;
}

Readiness both_ends_readiness(const Layout& w, const FileRecord& f) noexcept {
  return (w.files[f.both.reads].readiness & kIn) | (w.files[f.both.writes].readiness & kOut);
}

Readiness stream_readiness(const Layout& w, const FileRecord& f) noexcept {
  const StreamState& s = f.stream;
  Readiness now = 0;
  const bool at_eof = s.peer == 0 || s.peer_shut_write || s.shut_read;
  if (s.bytes > 0 || at_eof) now |= kIn;
  if (at_eof) now |= kRdHup;
  if (s.reset) now |= kErr;
  if (s.peer == 0 || (s.peer_shut_write && s.shut_write)) now |= kHup;
  if (s.peer == 0 || w.files[s.peer].stream.bytes < s.capacity) now |= kOut;
  return now;
}

Readiness counter_readiness(const Layout&, const FileRecord& f) noexcept {
  return f.counter.count > 0 ? kIn : 0;
}

Readiness event_readiness(const Layout& w, const FileRecord& f) noexcept {
  return counter_readiness(w, f) | (f.counter.count < UINT64_MAX - 1 ? kOut : 0);
}

Readiness epoll_readiness(const Layout&, const FileRecord& f) noexcept {
  return f.epoll.ready_head != 0 ? kIn : 0;
}

// --- from outside --------------------------------------------------------------------------------

bool outside(const FileRecord&) noexcept { return true; }
bool inside(const FileRecord&) noexcept { return false; }
bool unless_loopback(const FileRecord& f) noexcept { return !f.connection.loopback; }

// --- the table -----------------------------------------------------------------------------------

constexpr const char* kPipe = "a pipe";
constexpr const char* kUnix = "a unix socket";
constexpr const char* kTerminal = "a pseudo-terminal";
constexpr const char* kOther = "a file";

constexpr KindOfFile kKinds[] = {
    {FileKind::kFree, kOther, never_ready, close_nothing, inside},
    {FileKind::kSocket, kOther, new_socket_readiness, close_nothing, outside},
    {FileKind::kListener, kOther, listener_readiness, close_listener, outside, true},
    {FileKind::kConnection, "a connection between the server's own sockets", connection_readiness,
     close_connection, unless_loopback},
    {FileKind::kPipeRead, kPipe, read_end_readiness, close_stream, inside},
    {FileKind::kPipeWrite, kPipe, write_end_readiness, close_stream, inside},
    {FileKind::kPipeBoth, kPipe, both_ends_readiness, close_both, inside},
    {FileKind::kUnixSocket, kUnix, new_socket_readiness, close_nothing, inside},
    {FileKind::kUnixListener, kUnix, unix_listener_readiness, close_unix_listener, inside, true},
    {FileKind::kUnixStream, kUnix, stream_readiness, close_stream, inside},
    {FileKind::kEventFd, "an eventfd", event_readiness, close_nothing, inside},
    {FileKind::kTimerFd, kOther, counter_readiness, close_timer, inside},
    {FileKind::kEpoll, "an epoll", epoll_readiness, close_epoll, inside},
    {FileKind::kSignalFd, kOther, counter_readiness, close_nothing, outside, false,
     &SchedulerState::signal_files},
    {FileKind::kRandom, kOther, always_ready, close_nothing, inside},
    {FileKind::kDatagram, kOther, datagram_readiness, drop_datagrams, outside},
    {FileKind::kProcess, "a pidfd", counter_readiness, close_nothing, inside, false,
     &SchedulerState::process_files},
    {FileKind::kKernelSocket, kOther, kernel_socket_readiness, drop_rights, outside},
    {FileKind::kTerminalMaster, kTerminal, terminal_readiness, close_terminal_end, inside},
    {FileKind::kTerminalLine, kTerminal, terminal_readiness, close_terminal_end, inside},
    {FileKind::kInotify, "an inotify instance", inotify_readiness, close_inotify, inside, false,
     &SchedulerState::inotify_files},
};

static_assert(has_row_for_each_kind(kKinds), "a kind of file has no row, or not at its place");

}  // namespace

const KindOfFile& kind_of(const FileRecord& f) noexcept {
  return kKinds[static_cast<std::size_t>(f.kind)];
}

}  // namespace crane::dmt
