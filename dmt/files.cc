// SPDX-License-Identifier: Apache-2.0
#include "dmt/files.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/file_kind.h"
#include "dmt/timers.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

std::uint32_t* descriptor(Layout& w, std::uint16_t process, int fd) noexcept {
  CRANE_ASSERT(fd >= 0 && static_cast<std::uint32_t>(fd) < kFdsMax && process < kProcessesMax);
  return &w.descriptors[static_cast<std::size_t>(process) * kFdsMax + static_cast<unsigned>(fd)];
}

}  // namespace

// --- files -----------------------------------------------------------------------------------

static constinit Bound files_bound{kFilesMax - 1, "open files of all processes",
                                   "opening another fails (ENFILE)"};

bool has_room_for_files(const Layout& w, std::uint32_t count) noexcept {
  std::uint32_t room = kFilesMax - 1 - w.scheduler.files_used;
  for (std::uint32_t f = w.scheduler.free_file; f != 0 && room < count; f = w.files[f].chain) {
    ++room;
  }
  if (room < count) files_bound.count_refusal();
  return room >= count;
}

std::uint32_t create_file(Layout& w, Slot me, FileKind kind) noexcept {
  SchedulerState& s = w.scheduler;
  std::uint32_t index = s.free_file;
  if (index == 0 && s.files_used + 1 >= kFilesMax) {
    files_bound.count_refusal();
    return 0;
  }
  const std::uint32_t owner = index != 0 ? index : s.files_used + 1;
  std::uint16_t timer = kNone;
  if (kind == FileKind::kTimerFd) {
    timer = create_timer(w, TimerKind::kFile, owner);
    if (timer == kNone) return 0;
  }
  if (index != 0) {
    s.free_file = w.files[index].chain;
  } else {
    index = ++s.files_used;
  }
  FileRecord& f = w.files[index];
  const std::uint32_t generation = f.generation + 1;
  std::memset(static_cast<void*>(&f), 0, sizeof f);
  f.generation = generation;
  f.kind = kind;
  f.references = 1;
  f.object = new_object(w, me);
  if (kind == FileKind::kConnection) f.connection.low_water = 1;
  if (kind == FileKind::kTimerFd) f.counter.timer = timer;
  if (const auto count = kind_of(f).count; count != nullptr) ++(s.*count);
  f.readiness = readiness_of(w, index);
  return index;
}

void add_reference(Layout& w, std::uint32_t file) noexcept {
  CRANE_ASSERT(w.files[file].references > 0);
  ++w.files[file].references;
}

void drop_reference(Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  CRANE_ASSERT(f.references > 0 && f.kind != FileKind::kFree);  // DMT-F1
  if (--f.references > 0) return;
  const KindOfFile& kind = kind_of(f);
  if (kind.count != nullptr) --(w.scheduler.*kind.count);
  kind.close(w, file);  // DMT-F2
  detach_watches(w, file);
  f.kind = FileKind::kFree;
  f.chain = w.scheduler.free_file;
  w.scheduler.free_file = file;
}

// --- descriptors -----------------------------------------------------------------------------

void bind_descriptor(Layout& w, std::uint16_t process, int fd, std::uint32_t file) noexcept {
  std::uint32_t* entry = descriptor(w, process, fd);
  if (*entry != 0) drop_reference(w, *entry);
  *entry = file;
  ProcessRecord& p = w.processes[process];
  if (static_cast<std::uint32_t>(fd) >= p.fd_limit) p.fd_limit = static_cast<unsigned>(fd) + 1;
}

void unbind_descriptor(Layout& w, std::uint16_t process, int fd) noexcept {
  std::uint32_t* entry = descriptor(w, process, fd);
  if (*entry == 0) return;
  const std::uint32_t file = *entry;
  *entry = 0;
  drop_reference(w, file);
}

void copy_descriptors(Layout& w, std::uint16_t parent, std::uint16_t child) noexcept {
  const std::uint32_t limit = w.processes[parent].fd_limit;
  w.processes[child].fd_limit = limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    const std::uint32_t file = *descriptor(w, parent, static_cast<int>(fd));
    *descriptor(w, child, static_cast<int>(fd)) = file;
    if (file != 0) add_reference(w, file);
  }
}

void unbind_all_descriptors(Layout& w, std::uint16_t process) noexcept {
  const std::uint32_t limit = w.processes[process].fd_limit;
  for (std::uint32_t fd = 0; fd < limit; ++fd) {
    unbind_descriptor(w, process, static_cast<int>(fd));
  }
  w.processes[process].fd_limit = 0;
}

void join_ends(Layout& w, std::uint32_t file, std::uint32_t reads, std::uint32_t writes) noexcept {
  w.files[file].both = {reads, writes, w.files[reads].stream.both};
  w.files[reads].stream.both = w.files[writes].stream.both = file;
  refresh_readiness(w, file, false);
}

bool send_right(Layout& w, Slot me, std::uint32_t stream, std::uint32_t file, bool last,
                std::uint64_t place) noexcept {
  // The envelope is a separate file, because one file may be in flight several times at once.
  const std::uint32_t envelope = create_file(w, me, FileKind::kEventFd);
  if (envelope == 0) return false;
  w.files[envelope].counter.count = file;
  w.files[envelope].counter.semaphore = last;
  w.files[envelope].counter.signal_mask = place;
  if (file != 0) add_reference(w, file);
  std::uint32_t* at = &w.files[stream].rights;
  while (*at != 0) at = &w.files[*at].chain;
  *at = envelope;
  return true;
}

std::uint64_t place_of_right(const Layout& w, std::uint32_t stream) noexcept {
  return w.files[w.files[stream].rights].counter.signal_mask;
}

Right receive_right(Layout& w, std::uint32_t stream) noexcept {
  const std::uint32_t envelope = w.files[stream].rights;
  if (envelope == 0) return {false, true, 0};
  const FileRecord& e = w.files[envelope];
  const Right right{true, e.counter.semaphore, static_cast<std::uint32_t>(e.counter.count)};
  w.files[stream].rights = e.chain;
  drop_reference(w, envelope);
  return right;
}

// --- readiness -------------------------------------------------------------------------------

void timer_expired(Layout& w, std::uint32_t file) noexcept {
  CounterState& c = w.files[file].counter;
  const std::int64_t deadline = w.timers[c.timer].deadline_ns;
  std::uint64_t expirations = 1;
  if (c.interval_ns > 0) {
    expirations += static_cast<std::uint64_t>((w.scheduler.now_ns - deadline) / c.interval_ns);
    arm_timer(w, c.timer, deadline + static_cast<std::int64_t>(expirations) * c.interval_ns);
  }
  // As Linux, where such a timer stops until it is read: one event.
  const bool is_first = c.count == 0;
  c.count += expirations;
  refresh_readiness(w, file, is_first);
}

}  // namespace crane::dmt
