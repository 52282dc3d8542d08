// SPDX-License-Identifier: Apache-2.0
#pragma once
// Open file descriptions, who refers to them, and their readiness: the shared half of poll, select
// and epoll (rule 10: readiness comes from here, never from the kernel).
//
// A FileRecord is an open file description; a process' descriptor table maps fd -> file, 0 for
// descriptors that are plain (regular files, directories, ttys).  Readiness is a level kept up to
// date by set_readiness; a rise goes to the file's watches in the order in which they were made: a
// slot's watch (poll, select, epoll_wait) wakes the slot, an epoll's watch puts itself in that
// epoll's ready list, which is a rise of the epoll's own readiness (nesting works).
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-F1  references = number of descriptors in all tables that map to the file, plus one
//               while it waits in an accept queue, plus one per scm/rights message in flight.
// INVARIANT DMT-F2  A file with references == 0 is free, has no watches, and its close effects (FIN
//               or RST, EOF for the peer) have happened at the turn that dropped the last one.
// INVARIANT DMT-F3  A watch is in exactly one file's list; an epoll's is also in its owner's list.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"
#include "dmt/watches.h"

namespace crane::dmt {

// `port` of an end of a named pipe: whether it has ever had another end (no hang-up before).
inline constexpr std::uint16_t kFifoAlone = 1, kFifoMet = 2;
// .. of a kConnection: it is the reading end of a FIFO whose writers are outside (outbound.h).
inline constexpr std::uint16_t kHostFifo = 0xffff;
inline bool is_host_fifo(const FileRecord& f) noexcept {
  return f.kind == FileKind::kConnection && f.port == kHostFifo;
}

// --- files -----------------------------------------------------------------------------------

// A new file with one reference; 0 when the table is full or, for a timerfd, no timer is left
// (answer ENFILE).
std::uint32_t create_file(Layout& w, Slot me, FileKind kind) noexcept;
// Whether so many more can be created: for calls that cannot be undone when the table turns out to
// be full.
bool has_room_for_files(const Layout& w, std::uint32_t count) noexcept;
void add_reference(Layout& w, std::uint32_t file) noexcept;
// Drops one reference; the last one closes: connections send FIN or RST (unread input), listeners
// refuse what was queued, stream peers see EOF, epolls and timers are taken down.
void drop_reference(Layout& w, std::uint32_t file) noexcept;

// --- descriptors -----------------------------------------------------------------------------

// The file of `fd` in `process`; 0 = plain or out of range.
inline std::uint32_t file_of(const Layout& w, std::uint16_t process, int fd) noexcept {
  if (fd < 0 || static_cast<std::uint32_t>(fd) >= kFdsMax) return 0;
  return w.descriptors[static_cast<std::size_t>(process) * kFdsMax + static_cast<unsigned>(fd)];
}
// Makes `fd` refer to `file` (taking over one reference of the caller's); what it referred to
// before is dropped.
void bind_descriptor(Layout& w, std::uint16_t process, int fd, std::uint32_t file) noexcept;
// The descriptor was closed: drops its reference.  As in Linux, epoll watches go with the file's
// last reference, not with the descriptor.
void unbind_descriptor(Layout& w, std::uint16_t process, int fd) noexcept;
// fork: the child's table is a copy of the parent's.
void copy_descriptors(Layout& w, std::uint16_t parent, std::uint16_t child) noexcept;
// exit: all of them.
void unbind_all_descriptors(Layout& w, std::uint16_t process) noexcept;

// `file` (kPipeBoth) refers to both ends of a named pipe, whose references it takes.
void join_ends(Layout& w, std::uint32_t file, std::uint32_t reads, std::uint32_t writes) noexcept;

// SCM_RIGHTS: `file` (0 = a plain descriptor) is on its way to the unix stream end `stream`, in the
// order of sending; `last` ends a message.  False when the table of files is full.
// `place`: of the message in the stream (StreamState::taken).
bool send_right(Layout& w, Slot me, std::uint32_t stream, std::uint32_t file, bool last,
                std::uint64_t place = 0) noexcept;
// REQUIRES: one is on its way (FileRecord::rights).
std::uint64_t place_of_right(const Layout& w, std::uint32_t stream) noexcept;
// The oldest one, whose reference becomes the caller's; `found` false when there is none.
struct Right {
  bool found;
  bool last;
  std::uint32_t file;
};
Right receive_right(Layout& w, std::uint32_t stream) noexcept;

// --- readiness -------------------------------------------------------------------------------

// A timerfd's timer has fired, or was armed for a time that is past.  REQUIRES: it is not armed.
void timer_expired(Layout& w, std::uint32_t file) noexcept;

}  // namespace crane::dmt
