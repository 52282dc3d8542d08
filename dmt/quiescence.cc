// SPDX-License-Identifier: Apache-2.0
#include "dmt/quiescence.h"

#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "dmt/text_line.h"

namespace crane::dmt {
namespace {

BlockerKind blocker_of(const SlotRecord& s) noexcept {
  if (s.state == SlotState::kDetached && s.arrived.load(std::memory_order_seq_cst) == 0) {
    return BlockerKind::kDetachedThread;
  }
  // DMT-R2.  A slot without a thread yet (a new thread, a child) is not parked either.
  return s.parked.load(std::memory_order_seq_cst) != 1 ? BlockerKind::kAwake
                                                       : BlockerKind::kNothing;
}

BlockerKind blocker_of(const Layout& w, std::uint16_t process) noexcept {
  const ProcessRecord& p = w.processes[process];
  const SlotRecord& first = w.slots[p.main_slot];
  const bool has_begun = first.process != process || first.thread_id != 0;
  if (p.exec_pending || p.pid == 0 || !has_begun) return BlockerKind::kBeginning;
  for (std::uint32_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (is_alive(s) && s.process == process && s.thread_id == p.pid) return BlockerKind::kNothing;
  }
  return BlockerKind::kFirstThreadEnded;
}

// The slot's last turn, or null if it is older than the stored turns.
const TurnRecord* last_turn_of(const Layout& w, std::uint16_t slot) noexcept {
  const std::uint64_t clock = w.scheduler.clock;
  for (std::uint64_t back = 0; back < kTurnHistory && back < clock; ++back) {
    const TurnRecord& t = w.turns[(clock - back) % kTurnHistory];
    if (t.slot == slot) return &t;
  }
  return nullptr;
}

void append_last_operation(const Layout& w, std::uint16_t slot, const char* before,
                           TextLine& line) noexcept {
  const TurnRecord* turn = last_turn_of(w, slot);
  if (turn == nullptr || w.slots[slot].operations == 0) return;
  line << before;
  if (turn->operation == kOperationYield) {
    line << "a long computation";
  } else if (const char* name = operation_name(w, turn->operation); name != nullptr) {
    line << name;
  } else {
    line << "operation " << turn->operation;
  }
}

// CRIU dumps only what descriptors of processes refer to; a connection before accept() has none.
bool holds_unaccepted_bytes(const Layout& w, const FileRecord& listener) noexcept {
  for (std::uint32_t i = listener.listener.head; i != 0; i = w.files[i].chain) {
    if (w.files[i].stream.bytes > 0) return true;
  }
  return false;
}

bool has_unaccepted_bytes(const Layout& w) noexcept {
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const FileRecord& f = w.files[i];
    if (f.kind == FileKind::kUnixListener && holds_unaccepted_bytes(w, f)) return true;
  }
  return false;
}

}  // namespace

Blocker find_blocker(const Layout& w) noexcept {
  const SchedulerState& s = w.scheduler;
  if (s.fenced.load(std::memory_order_relaxed) != 0) return {BlockerKind::kFenced, 0, 0};
  if (!has_turn(w, kNodeSlot)) return {BlockerKind::kTurn, 0, 0};
  if (s.ended) return {BlockerKind::kEnded, 0, 0};
  for (std::uint16_t i = 1; i < s.slots_used; ++i) {
    if (!is_alive(w.slots[i])) continue;
    const BlockerKind why = blocker_of(w.slots[i]);
    if (why != BlockerKind::kNothing) return {why, i, w.slots[i].process};
  }
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    if (w.processes[i].state != ProcessState::kAlive) continue;
    const BlockerKind why = blocker_of(w, i);
    if (why != BlockerKind::kNothing) return {why, 0, i};
  }
  if (has_unaccepted_bytes(w)) return {BlockerKind::kUnaccepted, 0, 0};
  return {BlockerKind::kNothing, 0, 0};
}

void describe(const Layout& w, const Blocker& blocker, std::span<char> text) noexcept {
  TextLine line(text);
  switch (blocker.why) {
    case BlockerKind::kNothing:
      line << "quiescent";
      return;
    case BlockerKind::kTurn:
      line << "a thread of the server has the turn";
      return;
    case BlockerKind::kFenced:
      line << "the replica is fenced";
      return;
    case BlockerKind::kEnded:
      line << "the server has ended";
      return;
    case BlockerKind::kUnaccepted:
      line << "a connection between processes of the server holds bytes and is not accepted yet";
      return;
    default:
      break;
  }
  const ProcessRecord& p = w.processes[blocker.process];
  if (blocker.slot != 0) {
    line << "thread " << w.slots[blocker.slot].thread_id << " (slot " << blocker.slot << ") of ";
  }
  if (p.pid != 0) {
    line << "process " << p.pid;
  } else {
    line << "a process that has not started (record " << blocker.process << ")";
  }
  switch (blocker.why) {
    case BlockerKind::kBeginning:
      line << (p.exec_pending ? " is starting another program" : " is starting");
      break;
    case BlockerKind::kFirstThreadEnded:
      line << " has other threads but its first one has ended: such a process cannot be saved";
      break;
    case BlockerKind::kDetachedThread:
      line << " is detached";
      append_last_operation(w, blocker.slot, "; its last operation was ", line);
      break;
    default:
      line << " runs";
      append_last_operation(w, blocker.slot, "; its last operation was ", line);
  }
}

}  // namespace crane::dmt
