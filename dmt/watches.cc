// SPDX-License-Identifier: Apache-2.0
#include "dmt/watches.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/file_kind.h"
#include "dmt/file_owners.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

constexpr std::uint32_t kEpollExclusive = 1u << 28;
constexpr std::uint32_t kEpollOneshot = 1u << 30;
constexpr std::uint32_t kEpollEdge = 1u << 31;
constexpr Readiness kAlways = kErr | kHup;

constinit Bound watches_bound{kWatchesMax - 1, "descriptors polled by all processes",
                              "epoll_ctl (ENOSPC) and poll (ENOMEM) fail"};

std::uint32_t allocate_watch(Layout& w) noexcept {
  SchedulerState& s = w.scheduler;
  std::uint32_t index = s.free_watch;
  if (index != 0) {
    s.free_watch = w.watches[index].owner_next;
  } else {
    if (s.watches_used + 1 >= kWatchesMax) {
      watches_bound.count_refusal();
      return 0;
    }
    index = ++s.watches_used;
  }
  std::memset(static_cast<void*>(&w.watches[index]), 0, sizeof(WatchRecord));
  return index;
}

void link_to_file(Layout& w, std::uint32_t watch, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  WatchRecord& r = w.watches[watch];
  r.file = file;
  r.file_previous = f.watches_tail;
  if (f.watches_tail != 0) {
    w.watches[f.watches_tail].file_next = watch;
  } else {
    f.watches = watch;
  }
  f.watches_tail = watch;
}

void unlink_from_file(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  FileRecord& f = w.files[r.file];
  (r.file_previous != 0 ? w.watches[r.file_previous].file_next : f.watches) = r.file_next;
  (r.file_next != 0 ? w.watches[r.file_next].file_previous : f.watches_tail) = r.file_previous;
}

void push_ready(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  EpollState& e = w.files[r.owner].epoll;
  r.is_ready = true;
  r.ready_next = 0;
  r.ready_previous = e.ready_tail;
  (e.ready_tail != 0 ? w.watches[e.ready_tail].ready_next : e.ready_head) = watch;
  e.ready_tail = watch;
}

void unlink_ready(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  if (!r.is_ready) return;
  EpollState& e = w.files[r.owner].epoll;
  (r.ready_previous != 0 ? w.watches[r.ready_previous].ready_next : e.ready_head) = r.ready_next;
  (r.ready_next != 0 ? w.watches[r.ready_next].ready_previous : e.ready_tail) = r.ready_previous;
  r.ready_next = r.ready_previous = 0;
  r.is_ready = false;
}

void link_to_epoll(Layout& w, std::uint32_t watch, std::uint32_t epoll) noexcept {
  EpollState& e = w.files[epoll].epoll;
  WatchRecord& r = w.watches[watch];
  r.owner = epoll;
  r.owner_next = e.items;
  if (e.items != 0) w.watches[e.items].owner_previous = watch;
  e.items = watch;
}

void unlink_from_epoll(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  unlink_ready(w, watch);
  EpollState& e = w.files[r.owner].epoll;
  (r.owner_previous != 0 ? w.watches[r.owner_previous].owner_next : e.items) = r.owner_next;
  if (r.owner_next != 0) w.watches[r.owner_next].owner_previous = r.owner_previous;
}

Readiness interesting(const WatchRecord& watch, Readiness now) noexcept {
  return now & (watch.events | kAlways);
}

bool raise_readiness(Layout& w, std::uint32_t file, Readiness now, bool edge) noexcept;

// Reports to the watch that its file has become ready.  Returns whether that woke a thread.
bool notify(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  if (r.kind == WatchKind::kSlot) {
    return wake(w, Slot{static_cast<std::uint16_t>(r.owner)}, WakeReason::kSignalled);
  }
  if (!r.armed) return false;
  if (!r.is_ready) push_ready(w, watch);
  return raise_readiness(w, r.owner, kIn, true);
}

// Like set_readiness; returns whether that woke a thread.
bool raise_readiness(Layout& w, std::uint32_t file, Readiness now, bool edge) noexcept {
  FileRecord& f = w.files[file];
  const Readiness rise = now & ~f.readiness;
  f.readiness = now;
  if (rise == 0 && !(edge && now != 0)) return false;
  signal_owner(w, file, now, rise, edge);
  bool woke = signal(w, f.object, kind_of(f).wakes_one ? 1 : kAll) > 0;
  // The end of the other side concerns all waiters, including those that share its bytes.
  const bool for_all = (rise & (kErr | kHup | kRdHup)) != 0;
  bool exclusive_woken = false;
  for (std::uint32_t watch = f.watches; watch != 0;) {
    const std::uint32_t following = w.watches[watch].file_next;
    const WatchRecord& r = w.watches[watch];
    const bool exclusive = (r.flags & kWatchExclusive) != 0;
    if (interesting(r, now) != 0 && !(exclusive && exclusive_woken && !for_all)) {
      const bool woken = notify(w, watch);
      // As in Linux, an epoll without a waiting thread does not use up the event.
      exclusive_woken |= exclusive && woken;
      woke |= woken;
    }
    watch = following;
  }
  return woke;
}

void set_events(WatchRecord& r, std::uint32_t events, std::uint64_t data) noexcept {
  r.events = events & 0xffff;
  r.flags = static_cast<std::uint8_t>(((events & kEpollEdge) != 0 ? kWatchEdge : 0) |
                                      ((events & kEpollOneshot) != 0 ? kWatchOneshot : 0) |
                                      ((events & kEpollExclusive) != 0 ? kWatchExclusive : 0));
  r.data = data;
  r.armed = true;
}

}  // namespace

Readiness readiness_of(const Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  return kind_of(f).readiness(w, f);
}

void refresh_readiness(Layout& w, std::uint32_t file, bool edge) noexcept {
  set_readiness(w, file, readiness_of(w, file), edge);
}

void refresh_both(Layout& w, std::uint32_t end) noexcept {
  const FileRecord& f = w.files[end];
  if (!is_pipe_end(f.kind)) return;
  for (std::uint32_t b = f.stream.both; b != 0; b = w.files[b].both.next) {
    refresh_readiness(w, b, true);
  }
}

Readiness level_of(const Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  if (f.kind != FileKind::kEpoll) return f.readiness;
  // The bytes of items in an epoll's list may have been read meanwhile.  Linux checks, too.
  for (std::uint32_t i = f.epoll.ready_head; i != 0; i = w.watches[i].ready_next) {
    const WatchRecord& r = w.watches[i];
    if (interesting(r, level_of(w, r.file)) != 0) return kIn;
  }
  return 0;
}

void set_readiness(Layout& w, std::uint32_t file, Readiness now, bool edge) noexcept {
  raise_readiness(w, file, now, edge);
  refresh_both(w, file);
}

std::uint32_t watch_by_slot(Layout& w, Slot me, std::uint32_t file, std::uint32_t events) noexcept {
  const std::uint32_t watch = allocate_watch(w);
  if (watch == 0) return 0;
  WatchRecord& r = w.watches[watch];
  r.kind = WatchKind::kSlot;
  r.owner = value(me);
  r.events = events;
  r.armed = true;
  link_to_file(w, watch, file);
  return watch;
}

void drop_watch(Layout& w, std::uint32_t watch) noexcept {
  WatchRecord& r = w.watches[watch];
  CRANE_ASSERT(r.kind != WatchKind::kFree);  // DMT-F3
  if (r.file != 0) unlink_from_file(w, watch);
  if (r.kind == WatchKind::kEpoll) {
    unlink_from_epoll(w, watch);
    refresh_readiness(w, r.owner, false);
  }
  r.kind = WatchKind::kFree;
  r.owner_next = w.scheduler.free_watch;
  w.scheduler.free_watch = watch;
}

void drop_watches_of(Layout& w, Slot slot) noexcept {
  for (std::uint32_t i = 1; i <= w.scheduler.watches_used; ++i) {
    const WatchRecord& r = w.watches[i];
    if (r.kind == WatchKind::kSlot && r.owner == value(slot)) drop_watch(w, i);
  }
}

void detach_watches(Layout& w, std::uint32_t file) noexcept {
  while (const std::uint32_t watch = w.files[file].watches) {
    if (w.watches[watch].kind == WatchKind::kEpoll) {
      drop_watch(w, watch);
    } else {
      unlink_from_file(w, watch);
      w.watches[watch].file = 0;
    }
  }
}

// --- epoll -----------------------------------------------------------------------------------

namespace {

// Whether `from` watches `to`, directly or through other epolls; too deep counts as yes.
bool reaches(const Layout& w, std::uint32_t from, std::uint32_t to, int depth) noexcept {
  if (from == to || depth > kEpollNestMax) return true;
  if (w.files[from].kind != FileKind::kEpoll) return false;
  for (std::uint32_t i = w.files[from].epoll.items; i != 0; i = w.watches[i].owner_next) {
    if (reaches(w, w.watches[i].file, to, depth + 1)) return true;
  }
  return false;
}

}  // namespace

bool epoll_would_loop(const Layout& w, std::uint32_t epoll, std::uint32_t file) noexcept {
  return w.files[file].kind == FileKind::kEpoll && reaches(w, file, epoll, 1);
}

std::uint32_t epoll_find(const Layout& w, std::uint32_t epoll, int fd,
                         std::uint32_t file) noexcept {
  for (std::uint32_t i = w.files[file].watches; i != 0; i = w.watches[i].file_next) {
    const WatchRecord& r = w.watches[i];
    if (r.kind == WatchKind::kEpoll && r.owner == epoll && r.fd == fd) return i;
  }
  return 0;
}

std::uint32_t epoll_add(Layout& w, std::uint32_t epoll, int fd, std::uint32_t file,
                        std::uint32_t events, std::uint64_t data) noexcept {
  const std::uint32_t watch = allocate_watch(w);
  if (watch == 0) return 0;
  WatchRecord& r = w.watches[watch];
  r.kind = WatchKind::kEpoll;
  r.fd = fd;
  set_events(r, events, data);
  link_to_file(w, watch, file);
  link_to_epoll(w, watch, epoll);
  if (interesting(r, w.files[file].readiness) != 0) notify(w, watch);
  return watch;
}

void epoll_modify(Layout& w, std::uint32_t watch, std::uint32_t events,
                  std::uint64_t data) noexcept {
  WatchRecord& r = w.watches[watch];
  set_events(r, events, data);
  if (interesting(r, w.files[r.file].readiness) != 0) {
    notify(w, watch);
  } else {
    unlink_ready(w, watch);
  }
}

void epoll_remove(Layout& w, std::uint32_t watch) noexcept { drop_watch(w, watch); }

std::uint32_t epoll_collect(Layout& w, std::uint32_t epoll, EpollReady* out,
                            std::uint32_t capacity) noexcept {
  EpollState& e = w.files[epoll].epoll;
  std::uint32_t count = 0;
  const std::uint32_t last = e.ready_tail;
  for (std::uint32_t watch = e.ready_head; watch != 0 && count < capacity;) {
    WatchRecord& r = w.watches[watch];
    const std::uint32_t following = watch == last ? 0 : r.ready_next;
    const Readiness now = interesting(r, level_of(w, r.file));
    unlink_ready(w, watch);
    if (now != 0) {
      out[count++] = {now, r.data};
      if ((r.flags & kWatchOneshot) != 0) {
        r.armed = false;
      } else if ((r.flags & kWatchEdge) == 0) {
        push_ready(w, watch);  // level-triggered: stays, after the others (rule 21)
      }
    }
    watch = following;
  }
  set_readiness(w, epoll, readiness_of(w, epoll), false);
  return count;
}

}  // namespace crane::dmt
