// SPDX-License-Identifier: Apache-2.0
#include "dmt/stuck.h"

#include <cstring>

#include "dmt/file_kind.h"
#include "dmt/job_control.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "dmt/text_line.h"

namespace crane::dmt {
namespace {

// A watch on files may watch one of these.
bool is_anything_from_outside(const Layout& w) noexcept {
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    if (kind_of(w.files[i]).has_external_input(w.files[i])) return true;
  }
  return false;
}

const FileRecord* file_of_object(const Layout& w, std::uint64_t object) noexcept {
  for (std::uint32_t i = 1; object != 0 && i <= w.scheduler.files_used; ++i) {
    const FileRecord& f = w.files[i];
    if (f.kind != FileKind::kFree && f.object == object) return &f;
  }
  return nullptr;
}

bool awaits_signal(const Layout& w, const SlotRecord& s) noexcept {
  if (s.wait_object == signal_object(s.process)) return true;
  const char* name = operation_name(w, s.wait_operation);
  return name != nullptr && (std::strncmp(name, "sig", 3) == 0 || std::strcmp(name, "pause") == 0);
}

// The exceptions of STUCK-1.
bool may_be_woken(const Layout& w, std::uint16_t slot) noexcept {
  const SlotRecord& s = w.slots[slot];
  if (awaits_signal(w, s)) return true;
  const FileRecord* file = file_of_object(w, s.wait_object);
  if (file != nullptr && file->kind != FileKind::kEpoll) {
    return kind_of(*file).has_external_input(*file);
  }
  const bool watches = s.wait_object == 0 || file != nullptr;
  return watches && is_anything_from_outside(w);
}

void append_thread(const Layout& w, std::uint16_t slot, TextLine& line) noexcept {
  line << "thread " << w.slots[slot].thread_id << " of process "
       << w.processes[w.slots[slot].process].pid;
}

// Adds the file and its descriptor in the thread's process.
void append_file(const Layout& w, std::uint16_t process, const FileRecord& file,
                 TextLine& line) noexcept {
  line << " on " << kind_of(file).name;
  const auto number = static_cast<std::uint32_t>(&file - w.files);
  const std::uint32_t* row = w.descriptors + static_cast<std::size_t>(process) * kFdsMax;
  for (std::uint32_t fd = 0; fd < w.processes[process].fd_limit; ++fd) {
    if (row[fd] != number) continue;
    line << " (descriptor " << fd << ")";
    return;
  }
}

// Adds the last other thread that used the object, if its turn is still stored.  It usually holds a
// mutex.
void append_last_other(const Layout& w, std::uint16_t slot, TextLine& line) noexcept {
  const std::uint64_t object = w.slots[slot].wait_object;
  const std::uint64_t clock = w.scheduler.clock;
  for (std::uint64_t back = 0; object != 0 && back < kTurnHistory && back < clock; ++back) {
    const TurnRecord& t = w.turns[(clock - back) % kTurnHistory];
    if (t.object != object || t.slot == slot || t.slot == 0) continue;
    const char* name = operation_name(w, t.operation);
    if (!is_alive(w.slots[t.slot]) || name == nullptr) return;
    line << "; the last other thread there: ";
    append_thread(w, static_cast<std::uint16_t>(t.slot), line);
    line << " in " << name;
    return;
  }
}

}  // namespace

bool is_stuck(const Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  if (s.holder.load(std::memory_order_acquire) != kHolderIdle) return false;
  if (s.fenced.load(std::memory_order_relaxed) != 0 || s.ended || s.run_queue.head != kNone ||
      s.timers_armed != 0) {
    return false;
  }
  bool some = false;
  for (std::uint16_t i = 1; i < s.slots_used; ++i) {
    if (!is_alive(w.slots[i])) continue;
    if (w.slots[i].state != SlotState::kWaiting || may_be_woken(w, i)) return false;
    some = true;
  }
  return some;
}

std::uint16_t next_waiting(const Layout& w, std::uint16_t slot) noexcept {
  while (++slot < w.scheduler.slots_used) {
    if (w.slots[slot].state == SlotState::kWaiting) return slot;
  }
  return 0;
}

void describe_wait(const Layout& w, std::uint16_t slot, std::span<char> text) noexcept {
  const SlotRecord& s = w.slots[slot];
  TextLine line(text);
  append_thread(w, slot, line);
  const char* name = operation_name(w, s.wait_operation);
  line << " waits in " << (name != nullptr ? name : "an operation");
  if (const FileRecord* file = file_of_object(w, s.wait_object); file != nullptr) {
    append_file(w, s.process, *file, line);
  }
  if (s.wait_caller != 0) (line << ", called at ").hex(s.wait_caller);
  constexpr std::int64_t kMs = 1'000'000;
  const auto ms = static_cast<std::uint64_t>((w.scheduler.now_ns - s.wait_since_ns) / kMs);
  line << ", for " << ms << " ms of virtual time";
  if (is_stopped(w, s.process)) line << ", in a process that a signal stopped";
  append_last_other(w, slot, line);
}

}  // namespace crane::dmt
