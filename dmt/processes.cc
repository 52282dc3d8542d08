// SPDX-License-Identifier: Apache-2.0
#include "dmt/processes.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/connections.h"
#include "dmt/controlling_terminals.h"
#include "dmt/files.h"
#include "dmt/job_control.h"
#include "dmt/message_notices.h"
#include "dmt/node_link.h"
#include "dmt/posix_timers.h"
#include "dmt/sequence/output.h"
#include "dmt/slots.h"
#include "dmt/timers.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

constinit Bound processes_bound{kProcessesMax - 1, "processes, zombies included",
                                "fork fails (EAGAIN)"};

std::uint16_t allocate_process(Layout& w) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    if (w.processes[i].state == ProcessState::kFree) return i;
  }
  processes_bound.count_refusal();
  return kNoProcess;
}

void reset_record(Layout& w, std::uint16_t process, std::uint16_t parent) noexcept {
  ProcessRecord& p = w.processes[process];
  std::memset(static_cast<void*>(&p), 0, sizeof p);
  p.state = ProcessState::kAlive;
  p.parent = parent;
  p.space = p.life = new_object(w, kNodeSlot);
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

// Notifies the zombie's parent.  If the parent ignores SIGCHLD or set SA_NOCLDWAIT, or is init,
// there is no zombie: the record is freed at once.
void announce_end(Layout& w, std::uint16_t zombie) noexcept {
  const std::uint16_t parent = w.processes[zombie].parent;
  if (parent == kNoProcess) {
    free_record(w, zombie);
    return;
  }
  const bool ignored = w.processes[parent].dispositions[SIGCHLD] == Disposition::kIgnore;
  const bool stays = !ignored && !w.processes[parent].no_child_wait;
  if (!ignored) {
    const std::int32_t status = w.processes[zombie].wait_status;
    const int signo = status & 0x7f;
    SignalInfo info{};
    info.code = signo == 0 ? CLD_EXITED : CLD_KILLED;
    info.pid = w.processes[zombie].pid;
    info.status = signo == 0 ? (status >> 8) & 0xff : signo;
    send_signal(w, parent, SIGCHLD, info);
  }
  if (!stays) free_record(w, zombie);
  signal(w, child_object(parent), kAll);
}

// The encoding that <sys/wait.h> decodes.
constexpr std::int32_t kStoppedStatus = 0x7f, kContinuedStatus = 0xffff;

unsigned event_of(const ProcessRecord& p) noexcept {
  if (p.state == ProcessState::kZombie) return kChildEnded;
  if (p.stop_event == StopEvent::kStopped) return kChildStopped;
  if (p.stop_event == StopEvent::kContinued) return kChildContinued;
  return 0;
}

// The process that becomes the parent of the children of `process` when it ends: the nearest
// ancestor that collects orphans, otherwise init.  The main process is not init although its pid is
// 1: a server's master that waits for any child does not expect its grandchildren.
std::uint16_t collector_above(const Layout& w, std::uint16_t process) noexcept {
  std::uint16_t p = w.processes[process].parent;
  while (p != kNoProcess) {
    const ProcessRecord& record = w.processes[p];
    if (record.state == ProcessState::kAlive && record.collects_orphans) return p;
    p = record.parent;
  }
  return kNoProcess;
}

void hand_over_children(Layout& w, std::uint16_t process) noexcept {
  const std::uint16_t collector = collector_above(w, process);
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    ProcessRecord& child = w.processes[i];
    if (child.state == ProcessState::kFree || child.parent != process) continue;
    child.parent = collector;
    if (child.state == ProcessState::kZombie) {
      announce_end(w, i);
    } else if (child.parent_death_signal != 0) {
      SignalInfo info{};
      info.pid = w.processes[process].pid;
      send_signal(w, i, child.parent_death_signal, info);
    }
  }
}

// Makes pidfds of the process readable.
void refresh_process_files(Layout& w, std::uint16_t process) noexcept {
  if (w.scheduler.process_files == 0) return;
  for (std::uint32_t f = 1; f <= w.scheduler.files_used; ++f) {
    FileRecord& file = w.files[f];
    if (file.kind != FileKind::kProcess || !names_process(w, file, process)) continue;
    file.counter.count = 1;
    refresh_readiness(w, f, true);
  }
}

// Reports the end of the main process.
void emit_exit(Layout& w, std::int32_t status) noexcept {
  const std::span<std::byte> room = reserve_output(w, sizeof(OutputHeader));
  const auto others = static_cast<std::uint64_t>(
      std::count_if(std::begin(w.processes), std::end(w.processes),
                    [](const ProcessRecord& p) { return p.state == ProcessState::kAlive; }));
  const OutputHeader header{
      OutputType::kExit, {}, others, static_cast<std::uint32_t>(status), w.scheduler.clock};
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
  child.session = from.session;
  child.terminal = from.terminal;
  child.no_child_stop = from.no_child_stop;
  child.no_child_wait = from.no_child_wait;
  child.shares_memory = from.shares_memory;
  std::copy(std::begin(from.dispositions), std::end(from.dispositions), child.dispositions);
  const Slot slot = create_slot(w, process);
  if (slot == kNoSlot) {
    child.state = ProcessState::kFree;
    return {kNoProcess, kNoSlot};
  }
  child.main_slot = value(slot);
  child.cpu_warning_ns = from.cpu_warning_ns;
  child.cpu_end_ns = from.cpu_end_ns;
  std::copy(std::begin(from.cpu_limits), std::end(from.cpu_limits), child.cpu_limits);
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
  w.processes[process].session = 1;
  const Slot slot = create_slot(w, process);
  w.processes[process].main_slot = value(slot);
  return slot;
}

void end_process(Layout& w, std::uint16_t process, std::int32_t wait_status) noexcept {
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(p.state == ProcessState::kAlive);  // DMT-P1
  p.gone.store(1, std::memory_order_seq_cst);     // DMT-P2
  hang_up_orphans(w, process);
  leave_terminal(w, process, true);
  unbind_all_descriptors(w, process);
  if (p.alarm_timer != kNone) destroy_timer(w, p.alarm_timer);
  delete_posix_timers(w, process);
  remove_notices(w, process);
  forget_signals_of_process(w, process);
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (s.process == process && s.state != SlotState::kFree && s.state != SlotState::kDead) {
      kill_slot(w, Slot{i});
    }
  }
  p.slots = 0;
  p.wait_status = wait_status;
  p.state = ProcessState::kZombie;
  refresh_process_files(w, process);
  if (process != kMainProcess) hand_over_children(w, process);
  if (process == kMainProcess) {
    w.scheduler.ended = true;
    emit_exit(w, wait_status);
    return;
  }
  announce_end(w, process);
}

WaitChoice find_child(const Layout& w, std::uint16_t parent, std::int32_t pid,
                      unsigned events) noexcept {
  WaitChoice choice{kNoProcess, 0, 0, false};
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kFree || p.parent != parent || i == kMainProcess) continue;
    const auto group = static_cast<std::int32_t>(p.group);
    const bool fits = pid == -1 || (pid > 0 && p.pid == static_cast<std::uint32_t>(pid)) ||
                      (pid == 0 && p.group == w.processes[parent].group) ||
                      (pid < -1 && group == -pid);
    if (!fits) continue;
    choice.exists = true;
    const unsigned event = event_of(p) & events;
    if (event == 0 || choice.child != kNoProcess) continue;
    choice.child = i;
    choice.event = event;
    choice.status = event == kChildEnded     ? p.wait_status
                    : event == kChildStopped ? (p.stopped_by << 8) | kStoppedStatus
                                             : kContinuedStatus;
  }
  return choice;
}

void take_stop_event(Layout& w, std::uint16_t process) noexcept {
  w.processes[process].stop_event = StopEvent::kNothing;
}

bool names_process(const Layout& w, const FileRecord& file, std::uint16_t process) noexcept {
  const ProcessRecord& p = w.processes[process];
  return file.port == process && file.counter.signal_mask == p.life &&
         p.state != ProcessState::kFree;
}

void reap_process(Layout& w, std::uint16_t process) noexcept {
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(p.state == ProcessState::kZombie);
  w.processes[p.parent].children_cpu_ns += p.cpu_ns + p.children_cpu_ns;
  free_record(w, process);
}

}  // namespace crane::dmt
