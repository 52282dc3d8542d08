// SPDX-License-Identifier: Apache-2.0
#pragma once
// Watches: which slots and epolls learn that a file's readiness rises (see files.h).
//
// Threads / Processes: everything REQUIRES the turn.

#include <cstdint>

#include "dmt/base/ids.h"
#include "dmt/layout.h"

namespace crane::dmt {

inline constexpr Readiness kIn = 0x1, kPri = 0x2, kOut = 0x4, kErr = 0x8, kHup = 0x10;
inline constexpr Readiness kRdHup = 0x2000;

// The level that follows from the state of the file (an epoll, a stream, a connection, ...).
Readiness readiness_of(const Layout& w, std::uint32_t file) noexcept;

// The level that poll sees now: FileRecord::readiness; for an epoll, its list is checked.
Readiness level_of(const Layout& w, std::uint32_t file) noexcept;

// Sets the level; a rise signals the threads blocked on the file's object.  `edge`: new data or
// space arrived although the level may be unchanged (an edge for EPOLLET watches).
void set_readiness(Layout& w, std::uint32_t file, Readiness now, bool edge) noexcept;

// Recomputes the level from the file's state and sets it.
void refresh_readiness(Layout& w, std::uint32_t file, bool edge) noexcept;
// Gives the kPipeBoth files that refer to the end its readiness.
void refresh_both(Layout& w, std::uint32_t end) noexcept;

// A slot's watch for the duration of one blocking call.  Returns 0 if none is free.
std::uint32_t watch_by_slot(Layout& w, Slot me, std::uint32_t file, std::uint32_t events) noexcept;
// REQUIRES: not dropped before.  A slot's watch outlives its file, because closing the last
// descriptor under a poll does not wake the poll.  Then it is on no list, and its owner still drops
// it.
void drop_watch(Layout& w, std::uint32_t watch) noexcept;
// Drops all watches of a slot whose thread will not drop them (kill_slot).
void drop_watches_of(Layout& w, Slot slot) noexcept;
// The file ends: epolls forget it, slots' watches lose it.  Called when the last reference drops.
void detach_watches(Layout& w, std::uint32_t file) noexcept;

// --- epoll -----------------------------------------------------------------------------------

// Finds a registration by (file, fd number), as in Linux; 0 = not registered.
std::uint32_t epoll_find(const Layout& w, std::uint32_t epoll, int fd, std::uint32_t file) noexcept;
// Whether watching `file` from `epoll` would close a ring of epolls or nest them deeper than Linux
// allows.  Readiness propagates along the watches and must terminate, so the call returns ELOOP.
bool epoll_would_loop(const Layout& w, std::uint32_t epoll, std::uint32_t file) noexcept;
// REQUIRES: not epoll_would_loop.  `events` are epoll's bits incl. EPOLLET, EPOLLONESHOT,
// EPOLLEXCLUSIVE.  Returns 0 if there is no room.
std::uint32_t epoll_add(Layout& w, std::uint32_t epoll, int fd, std::uint32_t file,
                        std::uint32_t events, std::uint64_t data) noexcept;
void epoll_modify(Layout& w, std::uint32_t watch, std::uint32_t events,
                  std::uint64_t data) noexcept;
void epoll_remove(Layout& w, std::uint32_t watch) noexcept;
struct EpollReady {
  std::uint32_t events;
  std::uint64_t data;
};
// Takes up to `capacity` ready items in the order in which they became ready.  Level-triggered
// items that are still ready go to the tail (rotation, rule 21).  Returns how many.
std::uint32_t epoll_collect(Layout& w, std::uint32_t epoll, EpollReady* out,
                            std::uint32_t capacity) noexcept;

}  // namespace crane::dmt
