// SPDX-License-Identifier: Apache-2.0
// The pending bits decide.  The table of queued signals keeps the siginfo_t of each signal, in the
// order of sending.
#include "dmt/signals.h"

#include <csignal>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/job_control.h"
#include "dmt/posix_timers.h"
#include "dmt/wait_queues.h"
#include "dmt/watches.h"

namespace crane::dmt {
namespace {

// Objects named by kind and process, far above the counter of new_object.
constexpr std::uint64_t kSignalObjects = (1ull << 62) | (1ull << 32);
constexpr int kFirstRealTime = 32;

std::uint64_t bit(int signo) noexcept { return 1ull << (signo - 1); }

bool ignored_by_default(int signo) noexcept {
  return signo == SIGCHLD || signo == SIGURG || signo == SIGWINCH || signo == SIGCONT;
}

bool dropped(const ProcessRecord& p, int signo) noexcept {
  if (signo == SIGKILL || signo == SIGSTOP) return false;
  const Disposition d = p.dispositions[signo];
  return d == Disposition::kIgnore || (d == Disposition::kDefault && ignored_by_default(signo));
}

// A detached thread is not scheduled: it takes its pending signals when it rejoins.
bool is_scheduled(const SlotRecord& s) noexcept {
  return s.state == SlotState::kRunnable || s.state == SlotState::kWaiting;
}

// Finds the process' first scheduled thread that does not block the signal, and wakes it if it
// waits.
void interrupt_one(Layout& w, std::uint16_t process, int signo) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const SlotRecord& s = w.slots[i];
    if (!is_scheduled(s) || s.process != process || (s.blocked_signals & bit(signo)) != 0) continue;
    wake(w, Slot{i}, WakeReason::kInterrupted);
    return;  // a runnable thread takes it at its next turn (rule 14: the lowest unblocked slot)
  }
}

// Pending for the process or any of its threads: poll reports it to all threads, read only to one.
std::uint64_t pending_in(const Layout& w, std::uint16_t process) noexcept {
  std::uint64_t pending = w.processes[process].pending_signals;
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    if (is_alive(w.slots[i]) && w.slots[i].process == process) {
      pending |= w.slots[i].pending_signals;
    }
  }
  return pending;
}

void refresh_signal_files(Layout& w) noexcept {
  if (w.scheduler.signal_files == 0) return;
  for (std::uint32_t f = 1; f <= w.scheduler.files_used; ++f) {
    FileRecord& file = w.files[f];
    if (file.kind != FileKind::kSignalFd) continue;
    file.counter.count = (pending_in(w, file.port) & file.counter.signal_mask) != 0 ? 1 : 0;
    refresh_readiness(w, f, file.counter.count != 0);
  }
}

// --- the queue -----------------------------------------------------------------------------------

constinit Bound queue_bound{kQueuedSignalsMax - 1, "pending signals of all processes",
                            "sigqueue fails (EAGAIN), other signals merge"};

// Returns false if the table is full.
bool enqueue(Layout& w, std::uint16_t process, std::uint16_t slot, int signo,
             const SignalInfo& info) noexcept {
  SignalTable& t = w.signals;
  std::uint16_t i = t.free;
  if (i != 0) {
    t.free = t.records[i].next;
  } else if (t.used + 1u < kQueuedSignalsMax) {
    i = ++t.used;
  } else {
    queue_bound.count_refusal();
    return false;
  }
  t.records[i] = {0, static_cast<std::uint8_t>(signo), 0, slot, process, info};
  if (t.head == 0) {
    t.head = i;
  } else {
    t.records[t.tail].next = i;
  }
  t.tail = i;
  return true;
}

void remove_after(SignalTable& t, std::uint16_t previous, std::uint16_t i) noexcept {
  QueuedSignal& r = t.records[i];
  if (previous == 0) {
    t.head = r.next;
  } else {
    t.records[previous].next = r.next;
  }
  if (t.tail == i) t.tail = previous;
  r.signo = 0;
  r.next = t.free;
  t.free = i;
}

bool matches(const QueuedSignal& r, std::uint16_t process, std::uint16_t slot, int signo) noexcept {
  return r.process == process && r.slot == slot && r.signo == signo;
}

// Removes and returns the oldest record, or returns all zeros if there is none.  Sets `more` if
// another one is left.
SignalInfo dequeue(Layout& w, std::uint16_t process, std::uint16_t slot, int signo,
                   bool& more) noexcept {
  SignalTable& t = w.signals;
  SignalInfo info{};
  bool found = false;
  more = false;
  for (std::uint16_t previous = 0, i = t.head; i != 0;) {
    const std::uint16_t next = t.records[i].next;
    if (!matches(t.records[i], process, slot, signo)) {
      previous = i;
    } else if (found) {
      more = true;
      break;
    } else {
      found = true;
      info = t.records[i].info;
      remove_after(t, previous, i);
    }
    i = next;
  }
  if (info.code == SI_TIMER) timer_signal_taken(w, info);
  return info;
}

void forget(Layout& w, std::uint16_t process, std::uint16_t slot, int signo) noexcept {
  bool more = true;
  while (more) dequeue(w, process, slot, signo, more);
}

// As Linux: signals of faults come first, then the lowest number.
int first_of(std::uint64_t pending) noexcept {
  constexpr std::uint64_t kOfFaults = (1ull << (SIGSEGV - 1)) | (1ull << (SIGBUS - 1)) |
                                      (1ull << (SIGILL - 1)) | (1ull << (SIGTRAP - 1)) |
                                      (1ull << (SIGFPE - 1)) | (1ull << (SIGSYS - 1));
  const std::uint64_t faults = pending & kOfFaults;
  return __builtin_ctzll(faults != 0 ? faults : pending) + 1;
}

// Whether to create another record; false: nothing changes.
bool is_new(std::uint64_t pending, int signo) noexcept {
  return signo >= kFirstRealTime || (pending & bit(signo)) == 0;
}

}  // namespace

bool send_signal(Layout& w, std::uint16_t process, int signo, const SignalInfo& info) noexcept {
  ProcessRecord& p = w.processes[process];
  CRANE_ASSERT(signo >= 1 && signo <= 64);
  if (p.state != ProcessState::kAlive) return true;
  act_on_sending(w, process, signo);
  // As in Linux, a blocked signal is never ignored: a signalfd or sigwait may want it.
  const bool blocked = (w.slots[p.main_slot].blocked_signals & bit(signo)) != 0;
  if (!blocked && dropped(p, signo)) return true;
  if (is_new(p.pending_signals, signo) && !enqueue(w, process, kNone, signo, info) &&
      info.code == SI_QUEUE) {
    return false;
  }
  p.pending_signals |= bit(signo);
  signal(w, signal_object(process), kAll);
  refresh_signal_files(w);
  interrupt_one(w, process, signo);
  return true;
}

bool send_signal_to_slot(Layout& w, Slot slot, int signo, const SignalInfo& info) noexcept {
  SlotRecord& s = w.slots[value(slot)];
  CRANE_ASSERT(signo >= 1 && signo <= 64);
  if (!is_alive(s)) return true;  // a detached thread takes it when it rejoins
  act_on_sending(w, s.process, signo);
  const bool blocked = (s.blocked_signals & bit(signo)) != 0;
  if (!blocked && dropped(w.processes[s.process], signo)) return true;
  if (is_new(s.pending_signals, signo) && !enqueue(w, s.process, value(slot), signo, info) &&
      info.code == SI_QUEUE) {
    return false;
  }
  s.pending_signals |= bit(signo);
  signal(w, signal_object(s.process), kAll);
  refresh_signal_files(w);
  if (!blocked) wake(w, slot, WakeReason::kInterrupted);
  return true;
}

bool is_queued_by_timer(const Layout& w, std::uint32_t timer) noexcept {
  for (std::uint16_t i = w.signals.head; i != 0; i = w.signals.records[i].next) {
    const SignalInfo& info = w.signals.records[i].info;
    if (info.code == SI_TIMER && info.timer == timer) return true;
  }
  return false;
}

int take_signal_of(Layout& w, Slot slot, std::uint64_t set, SignalInfo& info) noexcept {
  SlotRecord& s = w.slots[value(slot)];
  ProcessRecord& p = w.processes[s.process];
  const bool own = (s.pending_signals & set) != 0;
  const std::uint64_t wanted = (own ? s.pending_signals : p.pending_signals) & set;
  if (wanted == 0) return 0;
  const int signo = first_of(wanted);
  bool more = false;
  info = dequeue(w, s.process, own ? value(slot) : kNone, signo, more);
  if (more) return signo;
  if (own) {
    s.pending_signals &= ~bit(signo);
  } else {
    p.pending_signals &= ~bit(signo);
  }
  refresh_signal_files(w);
  return signo;
}

int take_signal(Layout& w, Slot slot, SignalInfo& info) noexcept {
  return take_signal_of(w, slot, ~w.slots[value(slot)].blocked_signals, info);
}

int take_signal(Layout& w, Slot slot) noexcept {
  SignalInfo info;
  return take_signal(w, slot, info);
}

void discard_signal(Layout& w, std::uint16_t process, int signo) noexcept {
  ProcessRecord& p = w.processes[process];
  if ((p.pending_signals & bit(signo)) != 0) {
    p.pending_signals &= ~bit(signo);
    forget(w, process, kNone, signo);
  }
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    SlotRecord& s = w.slots[i];
    if (s.process != process || (s.pending_signals & bit(signo)) == 0) continue;
    s.pending_signals &= ~bit(signo);
    forget(w, process, i, signo);
  }
}

void forget_signals_of_slot(Layout& w, std::uint16_t slot) noexcept {
  SlotRecord& s = w.slots[slot];
  while (s.pending_signals != 0) {
    const int signo = __builtin_ctzll(s.pending_signals) + 1;
    s.pending_signals &= ~bit(signo);
    forget(w, s.process, slot, signo);
  }
}

void forget_signals_of_process(Layout& w, std::uint16_t process) noexcept {
  SignalTable& t = w.signals;
  for (std::uint16_t previous = 0, i = t.head; i != 0;) {
    const std::uint16_t next = t.records[i].next;
    if (t.records[i].process == process) {
      remove_after(t, previous, i);
    } else {
      previous = i;
    }
    i = next;
  }
  w.processes[process].pending_signals = 0;
}

std::uint32_t queued_signals(const Layout& w, std::uint16_t process) noexcept {
  std::uint32_t count = 0;
  for (std::uint16_t i = w.signals.head; i != 0; i = w.signals.records[i].next) {
    count += w.signals.records[i].process == process ? 1 : 0;
  }
  return count;
}

bool signal_deliverable(const Layout& w, Slot slot) noexcept {
  const SlotRecord& s = w.slots[value(slot)];
  const std::uint64_t pending = s.pending_signals | w.processes[s.process].pending_signals;
  return (pending & ~s.blocked_signals) != 0;
}

std::uint64_t signal_object(std::uint16_t process) noexcept { return kSignalObjects + process; }

}  // namespace crane::dmt
