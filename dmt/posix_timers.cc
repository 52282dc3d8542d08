// SPDX-License-Identifier: Apache-2.0
#include "dmt/posix_timers.h"

#include <csignal>

#include "dmt/base/bound.h"
#include "dmt/node_link.h"
#include "dmt/signals.h"
#include "dmt/timers.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

constexpr std::uint64_t kNotificationObjects = (1ull << 62) | (2ull << 32);
constexpr int kSignalOfTimer[2] = {SIGVTALRM, SIGPROF};

constinit Bound posix_timers_bound{kPosixTimersMax, "POSIX timers of all processes",
                                   "timer_create fails (EAGAIN)"};

// The next time of a series after `now`.  Whole intervals that have passed meanwhile count as
// overruns.
std::int64_t next_in_series(std::int64_t due, std::int64_t interval, std::int64_t now,
                            std::uint32_t& missed) noexcept {
  const std::int64_t passed = now > due ? (now - due) / interval : 0;
  missed = passed > INT32_MAX ? INT32_MAX : static_cast<std::uint32_t>(passed);
  std::int64_t next = 0;
  if (__builtin_add_overflow(due, (passed + 1) * interval, &next)) next = kNoDeadline - 1;
  return next;
}

std::int64_t clock_reading(const Layout& w, const PosixTimer& t) noexcept {
  switch (t.counts) {
    case TimerClock::kVirtual:
      return w.scheduler.now_ns;
    case TimerClock::kProcess:
      return w.processes[t.process].cpu_ns;
    case TimerClock::kThread:
      return w.slots[t.clock_slot].cpu_ns;
  }
  return 0;
}

void add_overruns(PosixTimer& t, std::uint32_t count) noexcept {
  constexpr std::uint32_t kMost = INT32_MAX;
  t.overrun = count > kMost - t.overrun ? kMost : t.overrun + count;
}

// Notifies of one expiration, unless the last notification is not delivered yet.
void notify(Layout& w, std::uint32_t timer) noexcept {
  PosixTimer& t = w.posix_timers[timer];
  if (t.notify == Notify::kNothing) return;
  if (t.pending) return add_overruns(t, 1);
  if (t.notify == Notify::kThread) {
    t.pending = true;
    signal(w, notification_object(t.process), kAll);
    return;
  }
  SignalInfo info{};
  info.code = SI_TIMER;
  info.value = t.value;
  info.timer = timer;
  if (t.slot == kNone) {
    send_signal(w, t.process, t.signo, info);
  } else if (w.slots[t.slot].generation == t.slot_generation) {
    send_signal_to_slot(w, Slot{t.slot}, t.signo, info);
  }
  // Without a queued record, nothing would report the delivery.  A signal that was already pending
  // from elsewhere stands for this one, too; an ignored signal and one of a full table are lost.
  t.pending = is_queued_by_timer(w, timer);
}

void arm(Layout& w, std::uint32_t timer, std::int64_t due_ns) noexcept {
  PosixTimer& t = w.posix_timers[timer];
  if (t.counts == TimerClock::kVirtual) {
    arm_timer(w, t.timer, due_ns);
    return;
  }
  if (t.cpu_due_ns == 0) ++w.processes[t.process].cpu_timers;
  t.cpu_due_ns = due_ns;
}

void disarm(Layout& w, std::uint32_t timer) noexcept {
  PosixTimer& t = w.posix_timers[timer];
  if (t.counts == TimerClock::kVirtual) {
    disarm_timer(w, t.timer);
    return;
  }
  if (t.cpu_due_ns != 0) --w.processes[t.process].cpu_timers;
  t.cpu_due_ns = 0;
}

}  // namespace

void alarm_expired(Layout& w, std::uint16_t process) noexcept {
  ProcessRecord& p = w.processes[process];
  if (p.alarm_interval_ns > 0) {
    std::uint32_t missed = 0;  // unused
    arm_timer(w, p.alarm_timer,
              next_in_series(w.timers[p.alarm_timer].deadline_ns, p.alarm_interval_ns,
                             w.scheduler.now_ns, missed));
  }
  SignalInfo info{};
  info.code = SI_KERNEL;
  send_signal(w, process, SIGALRM, info);
}

std::uint32_t create_posix_timer(Layout& w, const PosixTimer& like) noexcept {
  for (std::uint32_t i = 0; i < kPosixTimersMax; ++i) {
    PosixTimer& t = w.posix_timers[i];
    if (t.used) continue;
    std::uint16_t timer = kNone;
    if (like.counts == TimerClock::kVirtual) {
      timer = create_timer(w, TimerKind::kPosix, i);
      if (timer == kNone) return kNoPosixTimer;
    }
    if (i >= w.posix_timers_used) w.posix_timers_used = i + 1;
    t = like;
    t.used = true;
    t.timer = timer;
    return i;
  }
  posix_timers_bound.count_refusal();
  return kNoPosixTimer;
}

void delete_posix_timer(Layout& w, std::uint32_t timer) noexcept {
  disarm(w, timer);
  PosixTimer& t = w.posix_timers[timer];
  if (t.timer != kNone) destroy_timer(w, t.timer);
  t.used = false;
}

void delete_posix_timers(Layout& w, std::uint16_t process) noexcept {
  for (std::uint32_t i = 0; i < w.posix_timers_used; ++i) {
    const PosixTimer& t = w.posix_timers[i];
    if (t.used && t.process == process) delete_posix_timer(w, i);
  }
}

PosixTimer* find_posix_timer(Layout& w, std::uint16_t process, std::uint32_t timer) noexcept {
  if (timer >= kPosixTimersMax) return nullptr;
  PosixTimer& t = w.posix_timers[timer];
  return t.used && t.process == process ? &t : nullptr;
}

void set_posix_timer(Layout& w, std::uint32_t timer, std::int64_t due_ns,
                     std::int64_t interval_ns) noexcept {
  PosixTimer& t = w.posix_timers[timer];
  disarm(w, timer);
  t.interval_ns = due_ns == 0 ? 0 : interval_ns;  // as Linux: a disarmed timer has no interval
  t.overrun = t.last_overrun = 0;
  if (due_ns == 0) return;
  arm(w, timer, due_ns);
  // A timer that is already due does not wait for a tick.
  if (t.counts != TimerClock::kVirtual && due_ns <= clock_reading(w, t)) {
    posix_timer_expired(w, timer);
  }
}

std::int64_t time_left(const Layout& w, const PosixTimer& t) noexcept {
  std::int64_t due = t.cpu_due_ns;
  if (t.counts == TimerClock::kVirtual) {
    due = w.timers[t.timer].heap == 0 ? 0 : w.timers[t.timer].deadline_ns;
  }
  if (due == 0) return 0;
  const std::int64_t left = due - clock_reading(w, t);
  return left > 0 ? left : 1;
}

void posix_timer_expired(Layout& w, std::uint32_t timer) noexcept {
  PosixTimer& t = w.posix_timers[timer];
  const bool by_heap = t.counts == TimerClock::kVirtual;
  const std::int64_t due = by_heap ? w.timers[t.timer].deadline_ns : t.cpu_due_ns;
  disarm(w, timer);
  notify(w, timer);
  if (t.interval_ns == 0) return;
  std::uint32_t missed = 0;
  const std::int64_t next = next_in_series(due, t.interval_ns, clock_reading(w, t), missed);
  if (t.pending) add_overruns(t, missed);
  arm(w, timer, next);
}

void timer_signal_taken(Layout& w, SignalInfo& info) noexcept {
  if (info.timer >= kPosixTimersMax) return;
  PosixTimer& t = w.posix_timers[info.timer];
  if (!t.used) return;
  t.last_overrun = t.overrun;
  info.status = static_cast<std::int32_t>(t.overrun);
  t.overrun = 0;
  t.pending = false;
}

std::uint32_t take_thread_notification(Layout& w, std::uint16_t process) noexcept {
  for (std::uint32_t i = 0; i < w.posix_timers_used; ++i) {
    PosixTimer& t = w.posix_timers[i];
    if (!t.used || t.process != process || t.notify != Notify::kThread || !t.pending) continue;
    t.pending = false;
    t.last_overrun = t.overrun;
    t.overrun = 0;
    return i;
  }
  return kNoPosixTimer;
}

std::uint64_t notification_object(std::uint16_t process) noexcept {
  return kNotificationObjects + process;
}

// RLIMIT_CPU: SIGXCPU at the soft limit and each second after it, SIGKILL at the hard limit.
static void look_at_cpu_limit(Layout& w, std::uint16_t process) noexcept {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  ProcessRecord& p = w.processes[process];
  SignalInfo info{};
  info.code = SI_KERNEL;
  if (p.cpu_end_ns != 0 && p.cpu_ns >= p.cpu_end_ns) {
    send_signal(w, process, SIGKILL, info);
  } else if (p.cpu_warning_ns != 0 && p.cpu_ns >= p.cpu_warning_ns) {
    p.cpu_warning_ns += kSecondNs;
    send_signal(w, process, SIGXCPU, info);
  }
}

void use_processor(Layout& w, std::uint16_t slot, std::int64_t ns) noexcept {
  SlotRecord& s = w.slots[slot];
  ProcessRecord& p = w.processes[s.process];
  if (s.state == SlotState::kFree || p.state != ProcessState::kAlive) return;
  s.cpu_ns += ns;
  p.cpu_ns += ns;
  look_at_cpu_limit(w, s.process);
  for (int i = 0; i < 2; ++i) {
    if (p.cpu_due_ns[i] == 0 || p.cpu_ns < p.cpu_due_ns[i]) continue;
    std::uint32_t missed = 0;
    p.cpu_due_ns[i] = p.cpu_interval_ns[i] == 0
                          ? 0
                          : next_in_series(p.cpu_due_ns[i], p.cpu_interval_ns[i], p.cpu_ns, missed);
    SignalInfo info{};
    info.code = SI_KERNEL;
    send_signal(w, s.process, kSignalOfTimer[i], info);
  }
  if (p.cpu_timers == 0) return;
  for (std::uint32_t i = 0; i < w.posix_timers_used; ++i) {
    const PosixTimer& t = w.posix_timers[i];
    if (t.used && t.process == s.process && t.cpu_due_ns != 0 &&
        clock_reading(w, t) >= t.cpu_due_ns) {
      posix_timer_expired(w, i);
    }
  }
}

}  // namespace crane::dmt
