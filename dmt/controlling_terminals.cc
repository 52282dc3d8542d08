// SPDX-License-Identifier: Apache-2.0
#include "dmt/controlling_terminals.h"

#include <cerrno>
#include <csignal>

#include "dmt/base/assert.h"
#include "dmt/job_control.h"
#include "dmt/signals.h"

namespace crane::dmt {
namespace {

void send(Layout& w, std::uint16_t process, int signo) noexcept {
  SignalInfo info{};
  info.code = SI_KERNEL;
  send_signal(w, process, signo, info);
}

bool ignores(const Layout& w, Slot me, int signo) noexcept {
  const SlotRecord& s = w.slots[value(me)];
  return (s.blocked_signals >> (signo - 1) & 1) != 0 ||
         w.processes[s.process].dispositions[signo] == Disposition::kIgnore;
}

// The session of a group; 0 = no group or process has that number.
std::uint32_t session_of(const Layout& w, std::uint32_t group) noexcept {
  std::uint32_t by_pid = 0;
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kFree) continue;
    if (p.group == group) return p.session;
    if (p.pid == group) by_pid = p.session;
  }
  return by_pid;
}

}  // namespace

bool leads_session(const Layout& w, std::uint16_t process) noexcept {
  return w.processes[process].pid == w.processes[process].session;
}

void signal_group(Layout& w, std::uint32_t group, int signo) noexcept {
  if (group == 0) return;
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    const ProcessRecord& p = w.processes[i];
    if (p.state == ProcessState::kAlive && p.group == group) send(w, i, signo);
  }
}

void become_controlling(Layout& w, std::uint16_t process, std::uint16_t terminal) noexcept {
  TerminalRecord& t = w.terminals[terminal];
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(t.session == 0 && p.terminal == 0);  // TTY-3
  p.terminal = terminal;
  p.hung_up_group = 0;
  t.session = p.session;
  t.group = p.group;
}

void release_session(Layout& w, std::uint16_t terminal) noexcept {
  for (std::uint16_t i = 1; i < kProcessesMax; ++i) {
    if (w.processes[i].terminal == terminal) w.processes[i].terminal = 0;
  }
  w.terminals[terminal].session = w.terminals[terminal].group = 0;  // TTY-3
}

// As Linux' disassociate_ctty.
void leave_terminal(Layout& w, std::uint16_t process, bool ends) noexcept {
  ProcessRecord& p = w.processes[process];
  const std::uint16_t terminal = p.terminal;
  if (!leads_session(w, process)) {
    p.terminal = 0;
    return;
  }
  if (terminal == 0) {
    if (ends && p.hung_up_group != 0) {
      signal_group(w, p.hung_up_group, SIGHUP);
      signal_group(w, p.hung_up_group, SIGCONT);
    }
    p.hung_up_group = 0;
    return;
  }
  const std::uint32_t group = w.terminals[terminal].group;
  release_session(w, terminal);
  signal_group(w, group, SIGHUP);
  if (!ends) signal_group(w, group, SIGCONT);
}

// As Linux: signals the leader; when the leader has ended, the foreground group.
void hang_up_session(Layout& w, std::uint16_t terminal) noexcept {
  const TerminalRecord& t = w.terminals[terminal];
  for (std::uint16_t i = 1; t.session != 0 && i < kProcessesMax; ++i) {
    ProcessRecord& p = w.processes[i];
    if (p.state != ProcessState::kAlive || p.terminal != terminal || !leads_session(w, i)) continue;
    send(w, i, SIGHUP);
    send(w, i, SIGCONT);
    p.hung_up_group = t.group;
  }
  release_session(w, terminal);
}

Permission ask_terminal(Layout& w, Slot me, std::uint16_t terminal, int signo) noexcept {
  const std::uint16_t process = w.slots[value(me)].process;
  const ProcessRecord& p = w.processes[process];
  const TerminalRecord& t = w.terminals[terminal];
  if (p.terminal != terminal || t.group == 0 || t.group == p.group) return Permission::kGranted;
  if (ignores(w, me, signo)) {
    return signo == SIGTTIN ? Permission::kRefused : Permission::kGranted;
  }
  if (is_orphaned(w, p.group)) return Permission::kRefused;
  signal_group(w, p.group, signo);
  return Permission::kSignalled;
}

int set_foreground(Layout& w, std::uint16_t process, std::uint16_t terminal,
                   std::int32_t group) noexcept {
  const ProcessRecord& p = w.processes[process];
  TerminalRecord& t = w.terminals[terminal];
  if (p.terminal != terminal || t.session != p.session) return -ENOTTY;
  if (group < 0) return -EINVAL;
  const std::uint32_t session = session_of(w, static_cast<std::uint32_t>(group));
  if (session == 0) return -ESRCH;
  if (session != p.session) return -EPERM;
  t.group = static_cast<std::uint32_t>(group);
  return 0;
}

}  // namespace crane::dmt
