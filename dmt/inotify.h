// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual inotify: watches on files, and the events that wait at each instance.  What happens to a
// file is reported here by the operation that did it (runtime/preload/descriptors/notify.h), so
// that the events, their order and the watches' numbers are a function of the turns.
//
// A file is known by its virtual number (inodes.h).  Events lie in blocks (blocks.h) as read(2)
// hands them out: struct inotify_event and the padded name.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT DMT-I1  A watch is in the bucket of its file and in the list of its instance, once; a
//               file has at most one watch of an instance.
// INVARIANT DMT-I2  Each event lies whole in one block, which begins with how much of it is used
//               (a 32-bit number, itself included).  No block of an instance is empty.
// INVARIANT DMT-I3  SchedulerState::watched_events has a bit iff some watch asks for it.

#include <sys/inotify.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dmt/layout.h"

namespace crane::dmt {

// What wait at one instance at most (fs.inotify.max_queued_events), and how many instances there
// are (fs.inotify.max_user_instances).
inline constexpr std::uint32_t kInotifyEventsMax = 16384;
inline constexpr std::uint32_t kInotifyInstancesMax = 128;
inline constexpr std::uint32_t kInotifyNameMax = 255;

// --- watches ---------------------------------------------------------------------------------

// The watch's number, or a negative error number: -EEXIST (IN_MASK_CREATE), -ENOSPC.  `mask` is
// inotify_add_watch's, checked.
int add_file_watch(Layout& w, std::uint32_t instance, std::uint64_t number,
                   std::uint32_t mask) noexcept;
// 0, or -EINVAL: the instance has no such watch.
int remove_file_watch(Layout& w, std::uint32_t instance, std::int32_t watch) noexcept;
bool is_file_watched(const Layout& w, std::uint64_t number) noexcept;

// --- events ----------------------------------------------------------------------------------

// One event of a file.  `directory` and `file` are virtual numbers: the watches of both are told,
// those of 0 are not.  `name` is the file's in the directory; `is_unlinked`: it has gone since,
// which a watch with IN_EXCL_UNLINK does not want to hear of.
struct FileEvent {
  std::uint64_t directory = 0, file = 0;
  std::uint32_t mask = 0;  // an event's bit, and IN_ISDIR
  std::string_view name = {};
  std::uint32_t cookie = 0;
  bool is_unlinked = false;
};
void report_file_event(Layout& w, const FileEvent& e) noexcept;
// The file is gone, and nothing refers to it: IN_DELETE_SELF, and its watches go (IN_IGNORED).
void report_file_end(Layout& w, std::uint64_t number) noexcept;
// For both halves of a move.
std::uint32_t new_move_cookie(Layout& w) noexcept;

// --- an instance -----------------------------------------------------------------------------

// How many bytes the oldest event has; 0 = none waits.
std::size_t first_event_bytes(const Layout& w, std::uint32_t instance) noexcept;
// Puts the oldest event at `to` and forgets it.  REQUIRES: one waits.
void take_event(Layout& w, std::uint32_t instance, std::byte* to) noexcept;
std::uint32_t event_bytes(const FileRecord& f) noexcept;

Readiness inotify_readiness(const Layout& w, const FileRecord& f) noexcept;
// The last reference goes.
void close_inotify(Layout& w, std::uint32_t instance) noexcept;

}  // namespace crane::dmt
