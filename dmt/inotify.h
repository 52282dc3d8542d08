// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual inotify: watches on files, and the queued events of each instance.  The operation that
// changes a file reports the event (runtime/preload/descriptors/notify.h).  So the events, their
// order and the watch numbers are a function of the turns.
//
// A file is identified by its virtual number (inodes.h).  Blocks (blocks.h) hold events in the
// format of read(2): struct inotify_event and the padded name.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-I1  A watch is in the bucket of its file and in the list of its instance, once; a
//               file has at most one watch of an instance.
// INVARIANT DMT-I2  Each event is whole in one block, which begins with the size of its used part
//               (a 32-bit number, itself included).  No block of an instance is empty.
// INVARIANT DMT-I3  SchedulerState::watched_events has a bit iff some watch subscribes to it.

#include <sys/inotify.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// The largest number of queued events per instance (fs.inotify.max_queued_events) and of instances
// (fs.inotify.max_user_instances).
inline constexpr std::uint32_t kInotifyEventsMax = 16384;
inline constexpr std::uint32_t kInotifyInstancesMax = 128;
inline constexpr std::uint32_t kInotifyNameMax = 255;

// --- watches ---------------------------------------------------------------------------------

// Returns the watch's number, or a negative error number: -EEXIST (IN_MASK_CREATE), -ENOSPC. `mask`
// is the checked mask of inotify_add_watch.
int add_file_watch(Layout& w, std::uint32_t instance, std::uint64_t number,
                   std::uint32_t mask) noexcept;
// Returns 0, or -EINVAL: the instance has no such watch.
int remove_file_watch(Layout& w, std::uint32_t instance, std::int32_t watch) noexcept;
bool is_file_watched(const Layout& w, std::uint64_t number) noexcept;

// --- events ----------------------------------------------------------------------------------

// One event of a file.  `directory` and `file` are virtual numbers; the watches of both get the
// event, 0 means none.  `name` is the file's name in the directory.  `is_unlinked`: the name was
// removed since; a watch with IN_EXCL_UNLINK ignores such events.
struct FileEvent {
  std::uint64_t directory = 0, file = 0;
  std::uint32_t mask = 0;  // one event bit, and IN_ISDIR
  std::string_view name = {};
  std::uint32_t cookie = 0;
  bool is_unlinked = false;
};
void report_file_event(Layout& w, const FileEvent& e) noexcept;
// The file and all references to it are gone: sends IN_DELETE_SELF and ends its watches
// (IN_IGNORED).
void report_file_end(Layout& w, std::uint64_t number) noexcept;
// Returns the cookie for both halves of a move.
std::uint32_t new_move_cookie(Layout& w) noexcept;

// --- an instance -----------------------------------------------------------------------------

// Size of the oldest event in bytes; 0 = none is queued.
std::size_t first_event_bytes(const Layout& w, std::uint32_t instance) noexcept;
// Copies the oldest event to `to` and removes it.  REQUIRES: one is queued.
void take_event(Layout& w, std::uint32_t instance, std::byte* to) noexcept;
std::uint32_t event_bytes(const FileRecord& f) noexcept;

Readiness inotify_readiness(const Layout& w, const FileRecord& f) noexcept;
// Called when the last reference drops.
void close_inotify(Layout& w, std::uint32_t instance) noexcept;

}  // namespace crane::dmt
