// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of the server's processes that open, read, change or close a file report it here, at a
// turn; the watches of inotify (dmt/inotify.h) hear of it.
//
// A call that takes no turn (a plain read; in serial mode a plain write, too) takes one behind it
// for its report, if some watch asked for the event when the thread's last operation ended
// (ThreadBlock::watched_events): whether it does so is a function of the turns in both modes.
//
// Threads: REQUIRES the turn, but for what says that it takes one.  Nothing here touches errno.
//
// Where the replica has no watch that asks for an event, its report is one load and compare.
//
// An event by descriptor has the name that the descriptor's link has now.  It is no part of what a
// process may do that has a seccomp filter: such a process reports names only.

#include <sys/inotify.h>
#include <sys/stat.h>

#include <cstdint>

#include "dmt/inotify.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::notify {

inline bool wants(const dmt::Layout& w, std::uint32_t events) noexcept {
  return (w.scheduler.watched_events & events) != 0;
}

// --- open files ----------------------------------------------------------------------------------

void tell_of_descriptor(dmt::Layout& w, int fd, std::uint32_t events) noexcept;
inline void by_descriptor(dmt::Layout& w, int fd, std::uint32_t events) noexcept {
  if (wants(w, events)) tell_of_descriptor(w, fd, events);
}
// The plain descriptor `fd` was opened with `flags`; `is_new`: the call has made the file.
void tell_of_opening(dmt::Layout& w, int fd, int flags, bool is_new) noexcept;
inline void opened(dmt::Layout& w, int fd, int flags, bool is_new) noexcept {
  if (wants(w, IN_ALL_EVENTS)) tell_of_opening(w, fd, flags, is_new);
}

// Descriptors that are closed, one after the other: all of [first, last], or those of them that
// exec closes.  Before they are.
struct Leaving {
  int first, last;
  bool on_exec = false;
};
void tell_of_closing(dmt::Layout& w, const Leaving& leaving) noexcept;
inline void closing(dmt::Layout& w, const Leaving& leaving) noexcept {
  if (wants(w, IN_ALL_EVENTS)) tell_of_closing(w, leaving);
}

// --- names ---------------------------------------------------------------------------------------

// The name `path` came into its directory (IN_CREATE), perhaps with IN_ISDIR.
void tell_of_name(dmt::Layout& w, int directory, const char* path, std::uint32_t event) noexcept;
inline void made(dmt::Layout& w, int directory, const char* path, std::uint32_t kind = 0) noexcept {
  if (wants(w, IN_CREATE)) tell_of_name(w, directory, path, IN_CREATE | kind);
}
// The file at `path`; flags: AT_SYMLINK_NOFOLLOW.  No path: `directory` is the descriptor.
void tell_of_place(dmt::Layout& w, int directory, const char* path, int flags,
                   std::uint32_t events) noexcept;
inline void by_place(dmt::Layout& w, int directory, const char* path, int flags,
                     std::uint32_t events) noexcept {
  if (wants(w, events)) tell_of_place(w, directory, path, flags, events);
}

// A file as it was before its name went.
struct Before {
  bool is_known = false;
  struct stat status {};
};
// .. of nothing, where no watch asks for anything.
void look_before(const dmt::Layout& w, int directory, const char* path, Before& out) noexcept;
void removed(dmt::Layout& w, int directory, const char* path, const Before& file) noexcept;
// `from` was moved to `to`, which replaced `target`, or changed places with it.
struct Name {
  int directory;
  const char* path;
};
void moved(dmt::Layout& w, const Name& from, const Name& to, const Before& file,
           const Before& target, bool exchanged) noexcept;
// The file has got another name.
void linked(dmt::Layout& w, const Name& from, int flags, const Name& to) noexcept;

// --- calls that take no turn ---------------------------------------------------------------------

inline bool wants_later(std::uint32_t events) noexcept {
  return (self.watched_events & events) != 0;
}
// Each takes a turn when it reports.
void report_later(Op op, int fd, std::uint32_t events) noexcept;
void report_place_later(Op op, int directory, const char* path, int flags,
                        std::uint32_t events) noexcept;
inline ssize_t after_read(Op op, int fd, ssize_t done) noexcept {
  if (done > 0 && wants_later(IN_ACCESS)) report_later(op, fd, IN_ACCESS);
  return done;
}

// --- the instance (wrap_inotify.cc) --------------------------------------------------------------

ssize_t read_events(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

}  // namespace crane::notify
