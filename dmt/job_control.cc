// SPDX-License-Identifier: Apache-2.0
#include "dmt/job_control.h"

#include <csignal>

#include "dmt/process_table.h"
#include "dmt/signals.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

// Objects named by kind and process, like those of signals (signals.cc).
constexpr std::uint64_t kContinueObjects = (1ull << 62) | (3ull << 32);
constexpr int kStopSignals[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};

void notify_parent(Layout& w, std::uint16_t process, int code, int signo) noexcept {
  const ProcessRecord& p = w.processes[process];
  const std::uint16_t parent = p.parent;
  if (parent == kNoProcess) return;
  const ProcessRecord& receiver = w.processes[parent];
  if (!receiver.no_child_stop && receiver.dispositions[SIGCHLD] != Disposition::kIgnore) {
    SignalInfo info{};
    info.code = code;
    info.pid = p.pid;
    info.status = signo;
    send_signal(w, parent, SIGCHLD, info);
  }
  signal(w, child_object(parent), kAll);
}

void continue_process(Layout& w, std::uint16_t process) noexcept {
  ProcessRecord& p = w.processes[process];
  if (p.stopped_by == 0) return;
  p.stopped_by = 0;
  signal(w, continue_object(process), kAll);
}

// A group is orphaned if no member has a parent in another group of its session.  The server's own
// parent counts as one: a shell that could continue it.
bool holds_group(const Layout& w, const ProcessRecord& member) noexcept {
  if (&member == &w.processes[kMainProcess]) return true;
  if (member.parent == kNoProcess) return false;  // init is in another session
  const ProcessRecord& parent = w.processes[member.parent];
  return parent.state == ProcessState::kAlive && parent.group != member.group &&
         parent.session == member.session;
}

bool is_orphaned(const Layout& w, std::uint32_t group, std::uint16_t leaving) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state != ProcessState::kAlive || p.group != group || i == leaving) continue;
    const bool ends_with_it = leaving != kNoProcess && p.parent == leaving;
    if (!ends_with_it && holds_group(w, p)) return false;
  }
  return true;
}

bool has_stopped_member(const Layout& w, std::uint32_t group, std::uint16_t leaving) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kAlive && p.group == group && i != leaving && p.stopped_by != 0) {
      return true;
    }
  }
  return false;
}

void hang_up(Layout& w, std::uint32_t group, std::uint16_t leaving) noexcept {
  if (!is_orphaned(w, group, leaving) || !has_stopped_member(w, group, leaving)) return;
  for (const int signo : {SIGHUP, SIGCONT}) {
    for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
      const ProcessRecord& p = w.processes[i];
      if (p.state != ProcessState::kAlive || p.group != group || i == leaving) continue;
      SignalInfo info{};
      info.code = SI_KERNEL;
      send_signal(w, i, signo, info);
    }
  }
}

}  // namespace

bool is_stop_signal(int signo) noexcept {
  for (const int s : kStopSignals) {
    if (s == signo) return true;
  }
  return false;
}

bool is_orphaned(const Layout& w, std::uint32_t group) noexcept {
  return is_orphaned(w, group, kNoProcess);
}

void stop_process(Layout& w, std::uint16_t process, int signo) noexcept {
  ProcessRecord& p = w.processes[process];
  if (p.stopped_by != 0) return;
  if (signo != SIGSTOP && is_orphaned(w, p.group)) return;
  p.stopped_by = static_cast<std::uint8_t>(signo);
  p.stop_event = StopEvent::kStopped;  // JOB-2
  notify_parent(w, process, CLD_STOPPED, signo);
}

void act_on_sending(Layout& w, std::uint16_t process, int signo) noexcept {
  ProcessRecord& p = w.processes[process];
  if (signo == SIGKILL) return continue_process(w, process);
  if (is_stop_signal(signo)) return discard_signal(w, process, SIGCONT);
  if (signo != SIGCONT) return;
  for (const int s : kStopSignals) discard_signal(w, process, s);
  if (p.stopped_by == 0) return;
  continue_process(w, process);
  p.stop_event = StopEvent::kContinued;  // JOB-2
  notify_parent(w, process, CLD_CONTINUED, SIGCONT);
}

std::uint64_t continue_object(std::uint16_t process) noexcept { return kContinueObjects + process; }

void hang_up_orphans(Layout& w, std::uint16_t process) noexcept {
  const ProcessRecord& p = w.processes[process];
  if (process == kMainProcess) return;  // the replica ends
  if (holds_group(w, p)) hang_up(w, p.group, process);
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& child = w.processes[i];
    if (child.state == ProcessState::kAlive && child.parent == process && holds_group(w, child)) {
      hang_up(w, child.group, process);
    }
  }
}

}  // namespace crane::dmt
