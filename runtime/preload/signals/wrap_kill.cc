// SPDX-License-Identifier: Apache-2.0
// Sending signals: a signal is pending from the sender's turn on (DESIGN D11, rule 14).
#include <sys/resource.h>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/turn.h"

namespace crane {
namespace {

// RLIMIT_SIGPENDING, counted by process.
bool is_queue_full(const dmt::Layout& w, std::uint16_t process) noexcept {
  struct rlimit limit {};
  const long error = raw_syscall(SYS_prlimit64, 0, RLIMIT_SIGPENDING, nullptr, &limit);
  return error == 0 && dmt::queued_signals(w, process) >= limit.rlim_cur;
}

}  // namespace

int send_to_process(dmt::Layout& w, std::uint16_t process, int s,
                    const dmt::SignalInfo& info) noexcept {
  if (process != self.process && !may_signal(w.processes[process].pid, s)) return EPERM;
  if (info.code == SI_QUEUE && s >= kFirstRealTime && is_queue_full(w, process)) return EAGAIN;
  return s == 0 || dmt::send_signal(w, process, s, info) ? 0 : EAGAIN;
}

namespace {

// Selects the targets as kill() does; returns an error number.
int send_to(dmt::Layout& w, pid_t p, int s, const dmt::SignalInfo& info) noexcept {
  if (s < 0 || s > kSignals) return EINVAL;
  if (p > 0) {
    const std::uint16_t process = dmt::find_process(w, static_cast<std::uint32_t>(p));
    if (process == dmt::kNoProcess) return ESRCH;
    return send_to_process(w, process, s, info);
  }
  const std::uint32_t own_group = w.processes[self.process].group;
  const std::uint32_t group = p == 0 ? own_group : static_cast<std::uint32_t>(-p);
  bool found = false, permitted = false;
  for (std::uint16_t i = 1; i < dmt::kProcessesMax; ++i) {
    const dmt::ProcessRecord& record = w.processes[i];
    if (record.state == dmt::ProcessState::kFree) continue;
    const bool is_everyone = p == -1 && i != self.process && i != dmt::kMainProcess;
    if (!is_everyone && (p == -1 || record.group != group)) continue;
    found = true;
    permitted = send_to_process(w, i, s, info) != EPERM || permitted;
  }
  return permitted ? 0 : found ? EPERM : ESRCH;
}

int send_and_answer(Op op, pid_t p, int s, int code = SI_USER, std::uint64_t value = 0) noexcept {
  Turn turn(op);
  const int error = send_to(turn.w, p, s, sent_by_this_process(code, value));
  turn.result(error);
  return error == 0 ? 0 : fail(error);
}

}  // namespace

namespace wrap {

int kill(pid_t p, int s) { return send_and_answer(Op::kill, p, s); }

int killpg(pid_t p, int s) {
  if (p < 0) return fail(EINVAL);
  return send_and_answer(Op::killpg, -p, s);
}

int sigqueue(pid_t p, int s, const union sigval v) {
  if (p <= 0) return fail(ESRCH);
  return send_and_answer(Op::sigqueue, p, s, SI_QUEUE, value_of(v));
}

int tgkill(pid_t p, pid_t t, int s) {
  if (s < 0 || s > kSignals || p <= 0 || t <= 0) return fail(EINVAL);
  Turn turn(Op::tgkill);
  const std::uint16_t process = dmt::find_process(turn.w, static_cast<std::uint32_t>(p));
  for (std::uint16_t i = 1; i < turn.w.scheduler.slots_used; ++i) {
    const dmt::SlotRecord& slot = turn.w.slots[i];
    if (!dmt::is_alive(slot) || slot.process != process ||
        slot.thread_id != static_cast<std::uint32_t>(t)) {
      continue;
    }
    if (process != self.process && !may_signal(turn.w.processes[process].pid, s)) {
      return fail(EPERM);
    }
    if (s != 0) {
      dmt::send_signal_to_slot(turn.w, Slot{i}, s, sent_by_this_process(SI_TKILL, 0));
    }
    return 0;
  }
  return fail(ESRCH);
}

int raise(int s) {
  if (s != 0 && !is_valid_signal(s)) return fail(EINVAL);
  Turn turn(Op::raise);
  if (s != 0) {
    dmt::send_signal_to_slot(turn.w, own_slot(), s, sent_by_this_process(SI_TKILL, 0));
  }
  turn.result(s);
  return 0;
}

int gsignal(int s) { return wrap::raise(s); }

}  // namespace wrap
}  // namespace crane
