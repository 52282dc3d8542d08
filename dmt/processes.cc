// SPDX-License-Identifier: Apache-2.0
#include "dmt/processes.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/files.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/output.h"

namespace crane::dmt {
namespace {

// Objects named by kind and process, far above the counter of new_object.
constexpr std::uint64_t kChildObjects = 1ull << 62;
constexpr std::uint64_t kSignalObjects = (1ull << 62) | (1ull << 32);

std::uint64_t bit(int signo) noexcept { return 1ull << (signo - 1); }

bool ignored_by_default(int signo) noexcept {
  return signo == SIGCHLD || signo == SIGURG || signo == SIGWINCH || signo == SIGCONT;
}

bool dropped(const ProcessRecord& p, int signo) noexcept {
  if (signo == SIGKILL || signo == SIGSTOP) return false;
  const Disposition d = p.dispositions[signo];
  return d == Disposition::kIgnore || (d == Disposition::kDefault && ignored_by_default(signo));
}

// Wakes the first of the process' threads that does not block the signal and waits.
void interrupt_one(Layout& w, std::uint16_t process, int signo) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    const bool alive = s.state == SlotState::kRunnable || s.state == SlotState::kWaiting;
    if (!alive || s.process != process || (s.blocked_signals & bit(signo)) != 0) continue;
    wake(w, Slot{i}, WakeReason::kInterrupted);
    return;  // a runnable one takes it at its next turn (rule 14: the lowest unblocked slot)
  }
}

void refresh_signal_files(Layout& w) noexcept {
  if (w.scheduler.signal_files == 0) return;
  for (std::uint32_t f = 1; f <= w.scheduler.files_used; ++f) {
    FileRecord& file = w.files[f];
    if (file.kind != FileKind::kSignalFd) continue;
    const ProcessRecord& p = w.processes[file.port];
    file.counter.count = (p.pending_signals & file.counter.signal_mask) != 0 ? 1 : 0;
    refresh_readiness(w, f, file.counter.count != 0);
  }
}

std::uint16_t allocate_process(Layout& w) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    if (w.processes[i].state == ProcessState::kFree) return i;
  }
  return kNoProcess;
}

void reset_record(Layout& w, std::uint16_t process, std::uint16_t parent) noexcept {
  ProcessRecord& p = w.processes[process];
  std::memset(static_cast<void*>(&p), 0, sizeof p);
  p.state = ProcessState::kAlive;
  p.parent = parent;
  p.space = new_object(w, kNodeSlot);
  p.alarm_timer = kNone;
}

void free_record(Layout& w, std::uint16_t process) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    if (w.slots[i].state == SlotState::kDead && w.slots[i].process == process) {
      release_slot(w, Slot{i});
    }
  }
  w.processes[process].state = ProcessState::kFree;
}

// The zombie's parent learns of it; one that ignores SIGCHLD never has zombies.
void announce_end(Layout& w, std::uint16_t zombie) noexcept {
  const std::uint16_t parent = w.processes[zombie].parent;
  if (w.processes[parent].dispositions[SIGCHLD] == Disposition::kIgnore) {
    free_record(w, zombie);
  } else {
    send_signal(w, parent, SIGCHLD);
  }
  signal(w, child_object(parent), kAll);
}

void emit_exit(Layout& w, std::int32_t status) noexcept {
  const std::span<std::byte> room = reserve_output(w, sizeof(OutputHeader));
  const OutputHeader header{
      OutputType::kExit, {}, 0, static_cast<std::uint32_t>(status), w.scheduler.clock};
  std::memcpy(room.data(), &header, sizeof header);
  commit_output(w, sizeof header);
}

}  // namespace

Child create_process(Layout& w, std::uint16_t parent) noexcept {
  const std::uint16_t process = allocate_process(w);
  if (process == kNoProcess) return {kNoProcess, kNoSlot};
  reset_record(w, process, parent);
  ProcessRecord& child = w.processes[process];
  const ProcessRecord& from = w.processes[parent];
  child.group = from.group;
  std::copy(std::begin(from.dispositions), std::end(from.dispositions), child.dispositions);
  const Slot slot = create_slot(w, process);
  if (slot == kNoSlot) {
    child.state = ProcessState::kFree;
    return {kNoProcess, kNoSlot};
  }
  child.main_slot = value(slot);
  copy_descriptors(w, parent, process);
  return {process, slot};
}

void abandon_process(Layout& w, std::uint16_t process) noexcept {
  unbind_all_descriptors(w, process);
  release_slot(w, Slot{w.processes[process].main_slot});
  w.processes[process].state = ProcessState::kFree;
}

Slot create_main_process(Layout& w) noexcept {
  const std::uint16_t process = allocate_process(w);
  CRANE_ASSERT(process == kMainProcess);
  reset_record(w, process, kNoProcess);
  w.processes[process].pid = 1;
  w.processes[process].group = 1;
  const Slot slot = create_slot(w, process);
  w.processes[process].main_slot = value(slot);
  return slot;
}

void end_process(Layout& w, std::uint16_t process, std::int32_t wait_status) noexcept {
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(p.state == ProcessState::kAlive);  // P1
  p.gone.store(1, std::memory_order_seq_cst);     // P2
  unbind_all_descriptors(w, process);
  if (p.alarm_timer != kNone) destroy_timer(w, p.alarm_timer);
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (s.process == process && s.state != SlotState::kFree && s.state != SlotState::kDead) {
      kill_slot(w, Slot{i});
    }
  }
  p.slots = 0;
  p.wait_status = wait_status;
  p.state = ProcessState::kZombie;
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    ProcessRecord& child = w.processes[i];
    if (child.state == ProcessState::kFree || child.parent != process) continue;
    child.parent = kMainProcess;
    if (child.state == ProcessState::kZombie && process != kMainProcess) {
      announce_end(w, i);
    }
  }
  if (process == kMainProcess) {
    w.scheduler.ended = true;
    emit_exit(w, wait_status);
    return;
  }
  announce_end(w, process);
}

WaitChoice find_zombie(const Layout& w, std::uint16_t parent, std::int32_t pid) noexcept {
  WaitChoice choice{kNoProcess, false};
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kFree || p.parent != parent || i == kMainProcess) continue;
    const auto group = static_cast<std::int32_t>(p.group);
    const bool fits = pid == -1 || (pid > 0 && p.pid == static_cast<std::uint32_t>(pid)) ||
                      (pid == 0 && p.group == w.processes[parent].group) ||
                      (pid < -1 && group == -pid);
    if (!fits) continue;
    choice.exists = true;
    if (p.state == ProcessState::kZombie && choice.zombie == kNoProcess) choice.zombie = i;
  }
  return choice;
}

std::uint64_t child_object(std::uint16_t parent) noexcept { return kChildObjects + parent; }

void reap_process(Layout& w, std::uint16_t process) noexcept {
  CRANE_ASSERT(w.processes[process].state == ProcessState::kZombie);
  free_record(w, process);
}

std::uint16_t find_process(const Layout& w, std::uint32_t pid) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state != ProcessState::kFree && p.pid == pid) return i;
  }
  return kNoProcess;
}

// --- signals -----------------------------------------------------------------------------------

void send_signal(Layout& w, std::uint16_t process, int signo) noexcept {
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(signo >= 1 && signo <= 64);
  if (p.state != ProcessState::kAlive) return;
  // As in Linux, a blocked signal is never ignored: a signalfd or sigwait may want it.
  const bool blocked = (w.slots[p.main_slot].blocked_signals & bit(signo)) != 0;
  if (!blocked && dropped(p, signo)) return;
  p.pending_signals |= bit(signo);
  signal(w, signal_object(process), kAll);
  refresh_signal_files(w);
  interrupt_one(w, process, signo);
}

void send_signal_to_slot(Layout& w, Slot slot, int signo) noexcept {
  SlotRecord& s = w.slots[value(slot)];
  CRANE_ASSERT(signo >= 1 && signo <= 64);
  if (s.state == SlotState::kFree || s.state == SlotState::kDead) return;
  const bool blocked = (s.blocked_signals & bit(signo)) != 0;
  if (!blocked && dropped(w.processes[s.process], signo)) return;
  s.pending_signals |= bit(signo);
  signal(w, signal_object(s.process), kAll);
  if (!blocked) wake(w, slot, WakeReason::kInterrupted);
}

int take_signal(Layout& w, Slot slot) noexcept {
  SlotRecord& s = w.slots[value(slot)];
  ProcessRecord& p = w.processes[s.process];
  const std::uint64_t deliverable = (s.pending_signals | p.pending_signals) & ~s.blocked_signals;
  if (deliverable == 0) return 0;
  const int signo = __builtin_ctzll(deliverable) + 1;
  if ((s.pending_signals & bit(signo)) != 0) {
    s.pending_signals &= ~bit(signo);
  } else {
    p.pending_signals &= ~bit(signo);
    refresh_signal_files(w);
  }
  return signo;
}

bool signal_deliverable(const Layout& w, Slot slot) noexcept {
  const SlotRecord& s = w.slots[value(slot)];
  const std::uint64_t pending = s.pending_signals | w.processes[s.process].pending_signals;
  return (pending & ~s.blocked_signals) != 0;
}

std::uint64_t signal_object(std::uint16_t process) noexcept { return kSignalObjects + process; }

void alarm_expired(Layout& w, std::uint16_t process) noexcept {
  ProcessRecord& p = w.processes[process];
  if (p.alarm_interval_ns > 0) {
    arm_timer(w, p.alarm_timer, w.scheduler.now_ns + p.alarm_interval_ns);
  }
  send_signal(w, process, SIGALRM);
}

}  // namespace crane::dmt
