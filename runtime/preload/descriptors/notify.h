// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that open, read, change or close a file report it through these functions at a turn. The
// reports reach the inotify watches (dmt/inotify.h).
//
// A call that takes no turn (a plain read; in serial mode also a plain write) takes one after the
// call for its report. It does so if a watch requested the event when the thread's last operation
// ended (ThreadBlock::watched_events), so the decision is a function of the turns in both modes.
//
// Threads: REQUIRES the turn, except where a function takes one. These functions do not touch
// errno.
//
// When no watch of the replica requests an event, its report costs one load and one compare.
//
// An event reported by descriptor carries the name that the descriptor's link has now. A process
// with a seccomp filter may be forbidden to read the link, so it reports only events that have a
// name.

#include <sys/inotify.h>
#include <sys/stat.h>

#include <cstdint>

#include "dmt/inotify.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::notify {

inline bool is_watched(const dmt::Layout& w, std::uint32_t events) noexcept {
  return (w.scheduler.watched_events & events) != 0;
}

// --- open files ----------------------------------------------------------------------------------

void report_descriptor_event(dmt::Layout& w, int fd, std::uint32_t events) noexcept;
inline void by_descriptor(dmt::Layout& w, int fd, std::uint32_t events) noexcept {
  if (is_watched(w, events)) report_descriptor_event(w, fd, events);
}
// Reports that the plain descriptor `fd` was opened with `flags`.  `is_new` is true if the call
// created the file.
void report_opening(dmt::Layout& w, int fd, int flags, bool is_new) noexcept;
inline void opened(dmt::Layout& w, int fd, int flags, bool is_new) noexcept {
  if (is_watched(w, IN_ALL_EVENTS)) report_opening(w, fd, flags, is_new);
}

// Descriptors that are about to be closed, in order: all of [first, last], or only those that exec
// closes.
struct ClosedRange {
  int first, last;
  bool on_exec = false;
};
void report_closing(dmt::Layout& w, const ClosedRange& closing_range) noexcept;
inline void closing(dmt::Layout& w, const ClosedRange& closing_range) noexcept {
  if (is_watched(w, IN_ALL_EVENTS)) report_closing(w, closing_range);
}

// --- names ---------------------------------------------------------------------------------------

// Reports a new name `path` in its directory (IN_CREATE), perhaps with IN_ISDIR.
void report_name(dmt::Layout& w, int directory, const char* path, std::uint32_t event) noexcept;
inline void made(dmt::Layout& w, int directory, const char* path, std::uint32_t kind = 0) noexcept {
  if (is_watched(w, IN_CREATE)) report_name(w, directory, path, IN_CREATE | kind);
}
// Reports events of the file at `path`; flags: AT_SYMLINK_NOFOLLOW. Null path: of the descriptor
// `directory`.
void report_path(dmt::Layout& w, int directory, const char* path, int flags,
                 std::uint32_t events) noexcept;
inline void by_place(dmt::Layout& w, int directory, const char* path, int flags,
                     std::uint32_t events) noexcept {
  if (is_watched(w, events)) report_path(w, directory, path, flags, events);
}

// The status of a file before its name was removed.
struct Before {
  bool is_known = false;
  struct stat status {};
};
// Fills `out`; leaves it unknown when no watch requests any event.
void look_before(const dmt::Layout& w, int directory, const char* path, Before& out) noexcept;
void removed(dmt::Layout& w, int directory, const char* path, const Before& file) noexcept;
// Reports that `from` was moved to `to` and replaced `target`, or was exchanged with it.
struct Name {
  int directory;
  const char* path;
};
void moved(dmt::Layout& w, const Name& from, const Name& to, const Before& file,
           const Before& target, bool exchanged) noexcept;
// Reports that the file has another name.
void linked(dmt::Layout& w, const Name& from, int flags, const Name& to) noexcept;

// --- calls that take no turn ---------------------------------------------------------------------

inline bool needs_late_report(std::uint32_t events) noexcept {
  return (self.watched_events & events) != 0;
}
// Takes a turn for the report.
void report_later(Op op, int fd, std::uint32_t events) noexcept;
void report_place_later(Op op, int directory, const char* path, int flags,
                        std::uint32_t events) noexcept;
inline ssize_t after_read(Op op, int fd, ssize_t done) noexcept {
  if (done > 0 && needs_late_report(IN_ACCESS)) report_later(op, fd, IN_ACCESS);
  return done;
}

// --- the instance (wrap_inotify.cc) --------------------------------------------------------------

ssize_t read_events(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

}  // namespace crane::notify
