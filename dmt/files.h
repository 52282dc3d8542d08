// SPDX-License-Identifier: Apache-2.0
#pragma once
// Open file descriptions, the references to them, and their readiness: the common part of poll,
// select and epoll (rule 10: readiness comes from these records, never from the kernel).
//
// A FileRecord is an open file description.  A process' descriptor table maps fd -> file, 0 for
// plain descriptors (regular files, directories, ttys).  set_readiness keeps the readiness level up
// to date.  A rise reaches the file's watches in the order of their creation.  A slot's watch
// (poll, select, epoll_wait) wakes the slot.  An epoll's watch enters that epoll's ready list,
// which raises the epoll's own readiness, so nesting works.
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

// `port` of a named pipe's end: whether it has ever had another end (no hang-up before).
inline constexpr std::uint16_t kFifoAlone = 1, kFifoMet = 2;
// `port` of a kConnection: the reading end of a FIFO with writers outside (outbound.h).
inline constexpr std::uint16_t kHostFifo = 0xffff;
inline bool is_host_fifo(const FileRecord& f) noexcept {
  return f.kind == FileKind::kConnection && f.port == kHostFifo;
}

// --- files -----------------------------------------------------------------------------------

// Creates a file with one reference.  Returns 0 if the table is full or, for a timerfd, no timer is
// free (return ENFILE).
std::uint32_t create_file(Layout& w, Slot me, FileKind kind) noexcept;
// Whether `count` more files can be created.  For calls that cannot be undone if the table is full.
bool has_room_for_files(const Layout& w, std::uint32_t count) noexcept;
void add_reference(Layout& w, std::uint32_t file) noexcept;
// Drops one reference.  The last one closes the file: connections send FIN or RST (unread input),
// listeners refuse queued connections, stream peers see EOF, epolls and timers are destroyed.
void drop_reference(Layout& w, std::uint32_t file) noexcept;

// --- descriptors -----------------------------------------------------------------------------

// The file of `fd` in `process`; 0 = plain or out of range.
inline std::uint32_t file_of(const Layout& w, std::uint16_t process, int fd) noexcept {
  if (fd < 0 || static_cast<std::uint32_t>(fd) >= kFdsMax) return 0;
  return w.descriptors[static_cast<std::size_t>(process) * kFdsMax + static_cast<unsigned>(fd)];
}
// Makes `fd` refer to `file` and takes over one of the caller's references; drops the previous
// reference of `fd`.
void bind_descriptor(Layout& w, std::uint16_t process, int fd, std::uint32_t file) noexcept;
// Drops the reference of a closed descriptor.  As in Linux, epoll watches end with the file's last
// reference, not with the descriptor.
void unbind_descriptor(Layout& w, std::uint16_t process, int fd) noexcept;
// fork: copies the parent's table to the child.
void copy_descriptors(Layout& w, std::uint16_t parent, std::uint16_t child) noexcept;
// exit: unbinds all descriptors.
void unbind_all_descriptors(Layout& w, std::uint16_t process) noexcept;

// Makes `file` (kPipeBoth) refer to both ends of a named pipe and takes over their references.
void join_ends(Layout& w, std::uint32_t file, std::uint32_t reads, std::uint32_t writes) noexcept;

// SCM_RIGHTS: sends `file` (0 = a plain descriptor) to the unix stream end `stream`, in order;
// `last` ends a message.  `place`: of the message in the stream (StreamState::taken).  Returns
// false if the table of files is full.
bool send_right(Layout& w, Slot me, std::uint32_t stream, std::uint32_t file, bool last,
                std::uint64_t place = 0) noexcept;
// REQUIRES: a right is in flight (FileRecord::rights).
std::uint64_t place_of_right(const Layout& w, std::uint32_t stream) noexcept;
// Takes the oldest right and hands its reference to the caller; `found` is false if there is none.
struct Right {
  bool found;
  bool last;
  std::uint32_t file;
};
Right receive_right(Layout& w, std::uint32_t stream) noexcept;

// --- readiness -------------------------------------------------------------------------------

// Handles a timerfd's timer that has fired or was armed for a past time.  REQUIRES: it is not
// armed.
void timer_expired(Layout& w, std::uint32_t file) noexcept;

}  // namespace crane::dmt
