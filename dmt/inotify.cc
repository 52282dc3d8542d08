// SPDX-License-Identifier: Apache-2.0
#include "dmt/inotify.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/blocks.h"
#include "dmt/files.h"

namespace crane::dmt {
namespace {

constinit Bound watches_bound{kFileWatchesMax - 1, "watches of files",
                              "inotify_add_watch fails (ENOSPC)"};
constinit Bound events_bound{kInotifyEventsMax, "events of one inotify instance",
                             "later events are lost (IN_Q_OVERFLOW)"};

constexpr std::uint32_t kHeader = sizeof(struct inotify_event);
// A block's count of its used bytes, padded so that events are aligned.
constexpr std::uint32_t kBlockHeader = 16;
constexpr std::uint32_t kEventBytesMax = kHeader + kInotifyNameMax + 1;
static_assert(kEventBytesMax + kBlockHeader <= kBlockBytes);
// Input of connections has priority: events use at most a quarter of all blocks.
constexpr std::uint32_t kEventBlocksMax = kBlocksMax / 4;
// Only the directory gets events about names.
constexpr std::uint32_t kNameEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t kKeptBits = IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK;
static_assert(IN_ALL_EVENTS < 1u << kFileEventsMax);

InotifyState& state_of(Layout& w, std::uint32_t instance) noexcept {
  CRANE_ASSERT(w.files[instance].kind == FileKind::kInotify);
  return w.files[instance].inotify;
}

std::uint32_t& bucket_of(Layout& w, std::uint64_t number) noexcept {
  return w.inotify.buckets[number % kFileWatchBuckets];
}

// --- the number of watches per event (DMT-I3) ---------------------------------------------------

void count_interest(Layout& w, std::uint32_t mask, bool begins) noexcept {
  for (std::uint32_t left = mask & IN_ALL_EVENTS; left != 0; left &= left - 1) {
    std::uint32_t& n = w.inotify.interested[std::countr_zero(left)];
    n += begins ? 1 : -1u;
    const std::uint32_t bit = left & -left;
    if (n == 0) w.scheduler.watched_events &= ~bit;
    if (n != 0) w.scheduler.watched_events |= bit;
  }
}

// --- the queue -----------------------------------------------------------------------------------

std::uint32_t used_of(const Layout& w, std::uint32_t block) noexcept {
  std::uint32_t used;
  std::memcpy(&used, block_bytes(w, block), sizeof used);
  return used;
}

void set_used(Layout& w, std::uint32_t block, std::uint32_t used) noexcept {
  std::memcpy(block_bytes(w, block), &used, sizeof used);
}

struct inotify_event header_at(const Layout& w, std::uint32_t block, std::uint32_t at) noexcept {
  struct inotify_event e;
  std::memcpy(&e, block_bytes(w, block) + at, sizeof e);
  return e;
}

// As Linux: the name, its terminating 0, and padding to a whole number of headers.
std::uint32_t padded(std::string_view name) noexcept {
  if (name.empty()) return 0;
  return (static_cast<std::uint32_t>(name.size()) + kHeader) / kHeader * kHeader;
}

bool equals_last(const Layout& w, const InotifyState& s, const struct inotify_event& e,
                 std::string_view name) noexcept {
  if (s.events == 0 || s.overflowed) return false;
  const struct inotify_event last = header_at(w, s.tail_block, s.last_offset);
  if (last.wd != e.wd || last.mask != e.mask || last.len != e.len || last.mask == IN_IGNORED) {
    return false;
  }
  const std::byte* const text = block_bytes(w, s.tail_block) + s.last_offset + kHeader;
  return e.len == 0 ||
         (std::memcmp(text, name.data(), name.size()) == 0 && text[name.size()] == std::byte{0});
}

// Makes room for `bytes` in the last block.  Returns false if there is none.
bool make_room(Layout& w, InotifyState& s, std::uint32_t bytes) noexcept {
  if (s.tail_block != 0 && used_of(w, s.tail_block) + bytes <= kBlockBytes) return true;
  if (!fits(w, kBlockBytes, kEventBlocksMax)) return false;
  const std::uint32_t block = allocate_block(w);
  set_used(w, block, kBlockHeader);
  if (s.tail_block == 0) {
    s.head_block = block;
    s.head_offset = kBlockHeader;
  } else {
    w.block_next[s.tail_block] = block;
  }
  s.tail_block = block;
  return true;
}

void queue_event(Layout& w, std::uint32_t instance, std::int32_t watch, std::uint32_t mask,
                 std::uint32_t cookie, std::string_view name) noexcept {
  InotifyState& s = state_of(w, instance);
  const struct inotify_event e = {watch, mask, cookie, padded(name)};
  if (s.overflowed || equals_last(w, s, e, name)) return;
  if (s.events >= kInotifyEventsMax || !make_room(w, s, kHeader + e.len)) {
    events_bound.count_refusal();
    s.overflowed = true;  // the last event, reported after the queued ones
    return refresh_readiness(w, instance, true);
  }
  const std::uint32_t at = used_of(w, s.tail_block);
  std::byte* const to = block_bytes(w, s.tail_block) + at;
  std::memcpy(to, &e, sizeof e);
  std::memset(to + kHeader, 0, e.len);
  if (e.len != 0) std::memcpy(to + kHeader, name.data(), name.size());
  set_used(w, s.tail_block, at + kHeader + e.len);
  s.last_offset = at;
  ++s.events;
  s.bytes += kHeader + e.len;
  refresh_readiness(w, instance, true);
}

// --- watches -------------------------------------------------------------------------------------

void unlink(Layout& w, std::uint32_t* from, std::uint32_t index,
            std::uint32_t FileWatch::*next) noexcept {
  while (*from != index) {
    CRANE_ASSERT(*from != 0);  // DMT-I1
    from = &(w.inotify.watches[*from].*next);
  }
  *from = w.inotify.watches[index].*next;
}

void drop_file_watch(Layout& w, std::uint32_t index) noexcept {
  FileWatch& watch = w.inotify.watches[index];
  unlink(w, &bucket_of(w, watch.number), index, &FileWatch::bucket_next);
  unlink(w, &state_of(w, watch.instance).watches, index, &FileWatch::instance_next);
  count_interest(w, watch.mask, false);
  watch = {};
  watch.bucket_next = w.inotify.free;
  w.inotify.free = index;
}

// Drops the watch and queues IN_IGNORED for its instance.
void end_file_watch(Layout& w, std::uint32_t index) noexcept {
  const FileWatch watch = w.inotify.watches[index];
  drop_file_watch(w, index);
  queue_event(w, watch.instance, watch.watch, IN_IGNORED, 0, {});
}

std::uint32_t new_file_watch(Layout& w) noexcept {
  InotifyTable& t = w.inotify;
  if (t.free != 0) {
    const std::uint32_t index = t.free;
    t.free = t.watches[index].bucket_next;
    return index;
  }
  return t.used + 1 < kFileWatchesMax ? ++t.used : 0;
}

// Queues the event for the watches of one file.
void queue_for_watches(Layout& w, std::uint64_t number, const FileEvent& e, std::uint32_t mask,
                       std::string_view name) noexcept {
  std::uint32_t next;
  for (std::uint32_t i = bucket_of(w, number); i != 0; i = next) {
    const FileWatch& watch = w.inotify.watches[i];
    next = watch.bucket_next;
    if (watch.number != number || (watch.mask & mask & IN_ALL_EVENTS) == 0) continue;
    if (e.is_unlinked && (watch.mask & IN_EXCL_UNLINK) != 0) continue;
    queue_event(w, watch.instance, watch.watch, mask, e.cookie, name);
    if ((watch.mask & IN_ONESHOT) != 0) end_file_watch(w, i);
  }
}

}  // namespace

int add_file_watch(Layout& w, std::uint32_t instance, std::uint64_t number,
                   std::uint32_t mask) noexcept {
  const std::uint32_t kept = mask & kKeptBits;
  InotifyState& s = state_of(w, instance);
  for (std::uint32_t i = bucket_of(w, number); i != 0; i = w.inotify.watches[i].bucket_next) {
    FileWatch& known = w.inotify.watches[i];
    if (known.number != number || known.instance != instance) continue;
    if ((mask & IN_MASK_CREATE) != 0) return -EEXIST;
    const std::uint32_t before = known.mask;
    known.mask = (mask & IN_MASK_ADD) != 0 ? before | kept : kept;
    count_interest(w, known.mask, true);
    count_interest(w, before, false);
    return known.watch;
  }
  const std::uint32_t index = new_file_watch(w);
  if (index == 0) {
    watches_bound.count_refusal();
    return -ENOSPC;
  }
  std::uint32_t& bucket = bucket_of(w, number);
  s.last_watch = s.last_watch == INT32_MAX ? 1 : s.last_watch + 1;
  w.inotify.watches[index] = {.number = number,
                              .instance = instance,
                              .watch = s.last_watch,
                              .mask = kept,
                              .bucket_next = bucket,
                              .instance_next = s.watches};
  bucket = index;
  s.watches = index;
  count_interest(w, kept, true);
  return s.last_watch;
}

int remove_file_watch(Layout& w, std::uint32_t instance, std::int32_t watch) noexcept {
  std::uint32_t i = state_of(w, instance).watches;
  while (i != 0 && w.inotify.watches[i].watch != watch) i = w.inotify.watches[i].instance_next;
  if (i == 0) return -EINVAL;
  end_file_watch(w, i);
  return 0;
}

bool is_file_watched(const Layout& w, std::uint64_t number) noexcept {
  std::uint32_t i = w.inotify.buckets[number % kFileWatchBuckets];
  while (i != 0 && w.inotify.watches[i].number != number) i = w.inotify.watches[i].bucket_next;
  return i != 0;
}

void report_file_event(Layout& w, const FileEvent& e) noexcept {
  // An instance that watches both gets the directory's event first.
  if (e.directory != 0 && !e.name.empty()) {
    queue_for_watches(w, e.directory, e, e.mask, e.name.substr(0, kInotifyNameMax));
  }
  if (e.file != 0 && (e.mask & kNameEvents) == 0) {
    const bool is_self = (e.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
    queue_for_watches(w, e.file, e,
                      is_self ? e.mask & ~static_cast<std::uint32_t>(IN_ISDIR) : e.mask, {});
  }
}

void report_file_end(Layout& w, std::uint64_t number) noexcept {
  report_file_event(w, {.file = number, .mask = IN_DELETE_SELF});
  std::uint32_t next;
  for (std::uint32_t i = bucket_of(w, number); i != 0; i = next) {
    next = w.inotify.watches[i].bucket_next;
    if (w.inotify.watches[i].number == number) end_file_watch(w, i);
  }
}

std::uint32_t new_move_cookie(Layout& w) noexcept {
  if (++w.inotify.last_cookie == 0) ++w.inotify.last_cookie;
  return w.inotify.last_cookie;
}

std::size_t first_event_bytes(const Layout& w, std::uint32_t instance) noexcept {
  const InotifyState& s = w.files[instance].inotify;
  if (s.events == 0) return s.overflowed ? kHeader : 0;
  return kHeader + header_at(w, s.head_block, s.head_offset).len;
}

void take_event(Layout& w, std::uint32_t instance, std::byte* to) noexcept {
  InotifyState& s = state_of(w, instance);
  const auto size = static_cast<std::uint32_t>(first_event_bytes(w, instance));
  CRANE_ASSERT(size != 0);
  if (s.events == 0) {
    const struct inotify_event overflow = {-1, IN_Q_OVERFLOW, 0, 0};
    std::memcpy(to, &overflow, sizeof overflow);
    s.overflowed = false;
  } else {
    std::memcpy(to, block_bytes(w, s.head_block) + s.head_offset, size);
    s.head_offset += size;
    --s.events;
    s.bytes -= size;
    if (s.head_offset == used_of(w, s.head_block)) {
      const std::uint32_t next = w.block_next[s.head_block];
      free_block(w, s.head_block);
      s.head_block = next;
      s.head_offset = kBlockHeader;
      if (next == 0) s.tail_block = 0;
    }
  }
  refresh_readiness(w, instance, false);
}

std::uint32_t event_bytes(const FileRecord& f) noexcept {
  return f.inotify.bytes + (f.inotify.overflowed ? kHeader : 0);
}

Readiness inotify_readiness(const Layout&, const FileRecord& f) noexcept {
  return f.inotify.events > 0 || f.inotify.overflowed ? kIn : 0;
}

void close_inotify(Layout& w, std::uint32_t instance) noexcept {
  InotifyState& s = state_of(w, instance);
  while (s.watches != 0) drop_file_watch(w, s.watches);
  while (s.head_block != 0) {
    const std::uint32_t next = w.block_next[s.head_block];
    free_block(w, s.head_block);
    s.head_block = next;
  }
  s = {};
}

}  // namespace crane::dmt
