// SPDX-License-Identifier: Apache-2.0
#pragma once
// Watches: which slots and epolls learn that a file's readiness rises.  files.h says how.
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr Readiness kIn = 0x1, kPri = 0x2, kOut = 0x4, kErr = 0x8, kHup = 0x10;
inline constexpr Readiness kRdHup = 0x2000;

// The level that the file's state gives now (an epoll's, a stream's, a connection's, ...).
Readiness readiness_of(const Layout& w, std::uint32_t file) noexcept;

// The level as poll sees it now: FileRecord::readiness, but an epoll's list is looked through.
Readiness level_of(const Layout& w, std::uint32_t file) noexcept;

// Sets the level; threads blocked on the file's object are signalled when it rises.  `edge`: new
// data or space arrived though the level may be as before (an edge for EPOLLET watches).
void set_readiness(Layout& w, std::uint32_t file, Readiness now, bool edge) noexcept;

// Recomputes the level from the file's state and sets it.
void refresh_readiness(Layout& w, std::uint32_t file, bool edge) noexcept;
// Those that refer to the end have its readiness.
void refresh_both(Layout& w, std::uint32_t end) noexcept;

// A slot's watch for the length of one blocking call.  0 when there are none left.
std::uint32_t watch_by_slot(Layout& w, Slot me, std::uint32_t file, std::uint32_t events) noexcept;
// REQUIRES: not dropped before.  A slot's watch outlives its file (the last descriptor was closed
// under a poll, which no reader is told): it is then on no list and still its owner's to drop.
void drop_watch(Layout& w, std::uint32_t watch) noexcept;
// All watches of a slot whose thread will not drop them itself (kill_slot).
void drop_watches_of(Layout& w, Slot slot) noexcept;
// The file goes: epolls forget it, slots' watches lose it.  Called when the last reference drops.
void detach_watches(Layout& w, std::uint32_t file) noexcept;

// --- epoll -----------------------------------------------------------------------------------

// A registration is named by (file, fd number), as in Linux; 0 = not registered.
std::uint32_t epoll_find(const Layout& w, std::uint32_t epoll, int fd, std::uint32_t file) noexcept;
// True when watching `file` from `epoll` would close a ring of epolls or nest them deeper than
// Linux allows: readiness is raised along the watches, which must end (answer ELOOP).
bool epoll_would_loop(const Layout& w, std::uint32_t epoll, std::uint32_t file) noexcept;
// REQUIRES: not epoll_would_loop.  `events` are epoll's bits incl. EPOLLET, EPOLLONESHOT,
// EPOLLEXCLUSIVE.  0 = no room.
std::uint32_t epoll_add(Layout& w, std::uint32_t epoll, int fd, std::uint32_t file,
                        std::uint32_t events, std::uint64_t data) noexcept;
void epoll_modify(Layout& w, std::uint32_t watch, std::uint32_t events,
                  std::uint64_t data) noexcept;
void epoll_remove(Layout& w, std::uint32_t watch) noexcept;
struct EpollReady {
  std::uint32_t events;
  std::uint64_t data;
};
// Takes up to `capacity` ready items in order of becoming ready; level-triggered ones that are
// still ready go to the tail (rotation, rule 21).  Returns how many.
std::uint32_t epoll_collect(Layout& w, std::uint32_t epoll, EpollReady* out,
                            std::uint32_t capacity) noexcept;

}  // namespace crane::dmt
