// SPDX-License-Identifier: Apache-2.0
#include "dmt/files.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/connections.h"
#include "dmt/datagrams.h"
#include "dmt/scheduler.h"
#include "dmt/terminals.h"

namespace crane::dmt {
namespace {

std::uint32_t* descriptor(Layout& w, std::uint16_t process, int fd) noexcept {
  CRANE_ASSERT(fd >= 0 && static_cast<std::uint32_t>(fd) < kFdsMax && process < kProcessesMax);
  return &w.descriptors[static_cast<std::size_t>(process) * kFdsMax + static_cast<unsigned>(fd)];
}

// What was on its way to this socket.
void drop_rights(Layout& w, FileRecord& file) noexcept {
  const auto index = static_cast<std::uint32_t>(&file - w.files);
  for (Right r = receive_right(w, index); r.found; r = receive_right(w, index)) {
    if (r.file != 0) drop_reference(w, r.file);
  }
}

// The other end of a pipe or unix stream is gone: EOF for its readers, EPIPE for its writers.
void close_stream(Layout& w, FileRecord& file) noexcept {
  drop_rights(w, file);
  const std::uint32_t peer = file.stream.peer;
  if (peer == 0) return;
  file.stream.peer = 0;
  w.files[peer].stream.peer = 0;
  // A pipe with a name keeps what was not read as long as a writer is there
  // (runtime/preload/files/fifo.cc).
  if (file.stream.fifo != 0 && file.kind == FileKind::kPipeRead) {
    w.files[peer].stream.bytes = file.stream.bytes;
  }
  refresh_readiness(w, peer, true);
}

void close_unix_listener(Layout& w, FileRecord& file) noexcept {
  while (file.listener.head != 0) {
    const std::uint32_t queued = file.listener.head;
    file.listener.head = w.files[queued].chain;
    w.files[queued].chain = 0;
    drop_reference(w, queued);
  }
}

void close_epoll(Layout& w, std::uint32_t file) noexcept {
  while (w.files[file].epoll.items != 0) drop_watch(w, w.files[file].epoll.items);
}

void close_counter(Layout& w, FileRecord& file) noexcept {
  if (file.kind == FileKind::kTimerFd) destroy_timer(w, file.counter.timer);
  if (file.kind == FileKind::kSignalFd) --w.scheduler.signal_files;
  if (file.kind == FileKind::kProcess) --w.scheduler.process_files;
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

// What the last reference's end means outside the file itself (DMT-F2).
void close_file(Layout& w, std::uint32_t index) noexcept {
  FileRecord& file = w.files[index];
  switch (file.kind) {
    case FileKind::kListener:
      return close_listener(w, index);
    case FileKind::kConnection:
      return close_connection(w, index);
    case FileKind::kPipeRead:
    case FileKind::kPipeWrite:
    case FileKind::kUnixStream:
      return close_stream(w, file);
    case FileKind::kPipeBoth:
      return close_both(w, index);
    case FileKind::kUnixListener:
      return close_unix_listener(w, file);
    case FileKind::kTimerFd:
    case FileKind::kSignalFd:
    case FileKind::kProcess:
      return close_counter(w, file);
    case FileKind::kEpoll:
      return close_epoll(w, index);
    case FileKind::kDatagram:
      return drop_datagrams(w, index);
    case FileKind::kKernelSocket:
      return drop_rights(w, file);
    case FileKind::kTerminalMaster:
    case FileKind::kTerminalLine:
      return close_terminal_end(w, index);
    case FileKind::kFree:
    case FileKind::kSocket:
    case FileKind::kUnixSocket:
    case FileKind::kEventFd:
    case FileKind::kRandom:
      return;
  }
}

Readiness pipe_readiness(const Layout& w, const FileRecord& f) noexcept {
  const StreamState& s = f.stream;
  if (f.kind == FileKind::kPipeRead) {
    return (s.bytes > 0 ? kIn : 0) | (s.peer == 0 && f.port != kFifoAlone ? kHup : 0);
  }
  if (s.peer == 0) return kOut | kErr;
  return w.files[s.peer].stream.bytes < s.capacity ? kOut : 0;
}

Readiness stream_readiness(const Layout& w, const FileRecord& f) noexcept {
  const StreamState& s = f.stream;
  Readiness now = 0;
  const bool at_eof = s.peer == 0 || s.peer_shut_write || s.shut_read;
  if (s.bytes > 0 || at_eof) now |= kIn;
  if (at_eof) now |= kRdHup;
  if (s.peer == 0 || (s.peer_shut_write && s.shut_write)) now |= kHup;
  if (s.peer == 0 || w.files[s.peer].stream.bytes < s.capacity) now |= kOut;
  return now;
}

}  // namespace

// --- files -----------------------------------------------------------------------------------

static constinit Bound files_bound{kFilesMax - 1, "open files of all processes",
                                   "no further one is opened (ENFILE)"};

bool has_room_for_files(const Layout& w, std::uint32_t count) noexcept {
  std::uint32_t room = kFilesMax - 1 - w.scheduler.files_used;
  for (std::uint32_t f = w.scheduler.free_file; f != 0 && room < count; f = w.files[f].chain) {
    ++room;
  }
  if (room < count) files_bound.say();
  return room >= count;
}

std::uint32_t create_file(Layout& w, Slot me, FileKind kind) noexcept {
  SchedulerState& s = w.scheduler;
  std::uint32_t index = s.free_file;
  if (index == 0 && s.files_used + 1 >= kFilesMax) {
    files_bound.say();
    return 0;
  }
  const std::uint32_t owner = index != 0 ? index : s.files_used + 1;
  std::uint16_t timer = kNone;
  if (kind == FileKind::kTimerFd) {
    timer = create_timer(w, TimerKind::kFile, owner);
    if (timer == kNone) return 0;
  }
  if (index != 0) {
    s.free_file = w.files[index].chain;
  } else {
    index = ++s.files_used;
  }
  FileRecord& f = w.files[index];
  const std::uint32_t generation = f.generation + 1;
  std::memset(static_cast<void*>(&f), 0, sizeof f);
  f.generation = generation;
  f.kind = kind;
  f.references = 1;
  f.object = new_object(w, me);
  if (kind == FileKind::kConnection) f.connection.low_water = 1;
  if (kind == FileKind::kTimerFd) f.counter.timer = timer;
  if (kind == FileKind::kSignalFd) ++s.signal_files;
  if (kind == FileKind::kProcess) ++s.process_files;
  f.readiness = readiness_of(w, index);
  return index;
}

void add_reference(Layout& w, std::uint32_t file) noexcept {
  CRANE_ASSERT(w.files[file].references > 0);
  ++w.files[file].references;
}

void drop_reference(Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  CRANE_ASSERT(f.references > 0 && f.kind != FileKind::kFree);  // DMT-F1
  if (--f.references > 0) return;
  close_file(w, file);
  detach_watches(w, file);
  f.kind = FileKind::kFree;
  f.chain = w.scheduler.free_file;
  w.scheduler.free_file = file;
}

// --- descriptors -----------------------------------------------------------------------------

void bind_descriptor(Layout& w, std::uint16_t process, int fd, std::uint32_t file) noexcept {
  std::uint32_t* entry = descriptor(w, process, fd);
  if (*entry != 0) drop_reference(w, *entry);
  *entry = file;
  ProcessRecord& p = w.processes[process];
  if (static_cast<std::uint32_t>(fd) >= p.fd_limit) p.fd_limit = static_cast<unsigned>(fd) + 1;
}

void unbind_descriptor(Layout& w, std::uint16_t process, int fd) noexcept {
  std::uint32_t* entry = descriptor(w, process, fd);
  if (*entry == 0) return;
  const std::uint32_t file = *entry;
  *entry = 0;
  drop_reference(w, file);
}

void copy_descriptors(Layout& w, std::uint16_t parent, std::uint16_t child) noexcept {
  const std::uint32_t limit = w.processes[parent].fd_limit;
  w.processes[child].fd_limit = limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    const std::uint32_t file = *descriptor(w, parent, static_cast<int>(fd));
    *descriptor(w, child, static_cast<int>(fd)) = file;
    if (file != 0) add_reference(w, file);
  }
}

void unbind_all_descriptors(Layout& w, std::uint16_t process) noexcept {
  const std::uint32_t limit = w.processes[process].fd_limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    unbind_descriptor(w, process, static_cast<int>(fd));
  }
  w.processes[process].fd_limit = 0;
}

void join_ends(Layout& w, std::uint32_t file, std::uint32_t reads, std::uint32_t writes) noexcept {
  w.files[file].both = {reads, writes, w.files[reads].stream.both};
  w.files[reads].stream.both = w.files[writes].stream.both = file;
  refresh_readiness(w, file, false);
}

void refresh_both(Layout& w, std::uint32_t end) noexcept {
  const FileRecord& f = w.files[end];
  if (f.kind != FileKind::kPipeRead && f.kind != FileKind::kPipeWrite) return;
  for (std::uint32_t b = f.stream.both; b != 0; b = w.files[b].both.next) {
    refresh_readiness(w, b, true);
  }
}

bool send_right(Layout& w, Slot me, std::uint32_t stream, std::uint32_t file, bool last,
                std::uint64_t place) noexcept {
  // The envelope is a file of its own: one file may be on several ways at once.
  const std::uint32_t envelope = create_file(w, me, FileKind::kEventFd);
  if (envelope == 0) return false;
  w.files[envelope].counter.count = file;
  w.files[envelope].counter.semaphore = last;
  w.files[envelope].counter.signal_mask = place;
  if (file != 0) add_reference(w, file);
  std::uint32_t* at = &w.files[stream].rights;
  while (*at != 0) at = &w.files[*at].chain;
  *at = envelope;
  return true;
}

std::uint64_t place_of_right(const Layout& w, std::uint32_t stream) noexcept {
  return w.files[w.files[stream].rights].counter.signal_mask;
}

Right receive_right(Layout& w, std::uint32_t stream) noexcept {
  const std::uint32_t envelope = w.files[stream].rights;
  if (envelope == 0) return {false, true, 0};
  const FileRecord& e = w.files[envelope];
  const Right right{true, e.counter.semaphore, static_cast<std::uint32_t>(e.counter.count)};
  w.files[stream].rights = e.chain;
  drop_reference(w, envelope);
  return right;
}

// --- readiness -------------------------------------------------------------------------------

Readiness readiness_of(const Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  switch (f.kind) {
    case FileKind::kFree:
      return 0;
    case FileKind::kSocket:
    case FileKind::kUnixSocket:
      if (f.listener.connect_error != 0) return kIn | kOut | kErr | kHup | kRdHup;
      return kOut | kHup;  // as Linux says of a socket that is neither listening nor connected
    case FileKind::kListener:
    case FileKind::kUnixListener:
      return f.listener.queued > 0 ? kIn : 0;
    case FileKind::kConnection:
      return connection_readiness(w, f);
    case FileKind::kPipeRead:
    case FileKind::kPipeWrite:
      return pipe_readiness(w, f);
    case FileKind::kPipeBoth:
      return (w.files[f.both.reads].readiness & kIn) | (w.files[f.both.writes].readiness & kOut);
    case FileKind::kUnixStream:
      return stream_readiness(w, f);
    case FileKind::kEventFd:
      return (f.counter.count > 0 ? kIn : 0) | (f.counter.count < UINT64_MAX - 1 ? kOut : 0);
    case FileKind::kTimerFd:
    case FileKind::kSignalFd:
    case FileKind::kProcess:
      return f.counter.count > 0 ? kIn : 0;
    case FileKind::kEpoll:
      return f.epoll.ready_head != 0 ? kIn : 0;
    case FileKind::kRandom:
      return kIn | kOut;
    case FileKind::kDatagram:
      return datagram_readiness(f);
    case FileKind::kKernelSocket:
      return (f.listener.queued > 0 ? kIn : 0) | kOut;
    case FileKind::kTerminalMaster:
    case FileKind::kTerminalLine:
      return terminal_readiness(w, f);
  }
  return 0;
}

void refresh_readiness(Layout& w, std::uint32_t file, bool edge) noexcept {
  set_readiness(w, file, readiness_of(w, file), edge);
}

void timer_expired(Layout& w, std::uint32_t file) noexcept {
  CounterState& c = w.files[file].counter;
  const std::int64_t deadline = w.timers[c.timer].deadline_ns;
  std::uint64_t expirations = 1;
  if (c.interval_ns > 0) {
    expirations += static_cast<std::uint64_t>((w.scheduler.now_ns - deadline) / c.interval_ns);
    arm_timer(w, c.timer, deadline + static_cast<std::int64_t>(expirations) * c.interval_ns);
  }
  c.count += expirations;
  refresh_readiness(w, file, true);
}

}  // namespace crane::dmt
