// SPDX-License-Identifier: Apache-2.0
// Alarms, interval timers and POSIX timers, in virtual time and on processor clocks
// (dmt/posix_timers.h).
//
// Rules:
// * One thread of ours starts the threads of a process' SIGEV_THREAD timers. It is in the schedule
//   like any other thread.
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/posix_timers.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/threads/thread_life.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

constexpr std::int64_t kNsPerMicrosecond = 1000;

}  // namespace

// --- the process' alarm --------------------------------------------------------------------------

namespace {

struct Alarm {
  std::int64_t left_ns = 0;  // 0 = not armed
  std::int64_t interval_ns = 0;
};

// REQUIRES the turn.
Alarm read_alarm(const dmt::Layout& w) noexcept {
  const dmt::ProcessRecord& p = w.processes[self.process];
  if (p.alarm_timer == dmt::kNone || w.timers[p.alarm_timer].heap == 0) return {};
  const std::int64_t left = w.timers[p.alarm_timer].deadline_ns - w.scheduler.now_ns;
  return {left > 0 ? left : 1, p.alarm_interval_ns};
}

// REQUIRES the turn. Returns false when there is no timer left.
bool set_alarm(dmt::Layout& w, const Alarm& alarm) noexcept {
  dmt::ProcessRecord& p = w.processes[self.process];
  p.alarm_interval_ns = alarm.interval_ns;
  if (alarm.left_ns == 0) {
    if (p.alarm_timer != dmt::kNone) dmt::disarm_timer(w, p.alarm_timer);
    return true;
  }
  if (p.alarm_timer == dmt::kNone) {
    p.alarm_timer = dmt::create_timer(w, dmt::TimerKind::kProcess, self.process);
    if (p.alarm_timer == dmt::kNone) return false;
  }
  dmt::arm_timer(w, p.alarm_timer, deadline_after(w, alarm.left_ns));
  return true;
}

bool is_valid_time(const struct timeval& t) noexcept {
  return t.tv_sec >= 0 && t.tv_usec >= 0 && t.tv_usec < 1'000'000;
}
std::int64_t ns_of(const struct timeval& t) noexcept {
  return crane::to_ns(timespec{t.tv_sec, t.tv_usec * kNsPerMicrosecond});
}

void fill(struct itimerval* out, const Alarm& alarm) noexcept {
  if (out == nullptr) return;
  out->it_value = to_timeval(alarm.left_ns);
  out->it_interval = to_timeval(alarm.interval_ns);
}

bool is_cpu_timer(__itimer_which_t which) noexcept {
  return which == ITIMER_VIRTUAL || which == ITIMER_PROF;
}
int cpu_index(__itimer_which_t which) noexcept { return which == ITIMER_VIRTUAL ? 0 : 1; }

// REQUIRES the turn.
Alarm read_cpu_timer(const dmt::Layout& w, __itimer_which_t which) noexcept {
  const dmt::ProcessRecord& p = w.processes[self.process];
  const int i = cpu_index(which);
  if (p.cpu_due_ns[i] == 0) return {0, p.cpu_interval_ns[i]};
  const std::int64_t left = p.cpu_due_ns[i] - p.cpu_ns;
  return {left > 0 ? left : 1, p.cpu_interval_ns[i]};
}

// REQUIRES the turn.
void set_cpu_timer(dmt::Layout& w, __itimer_which_t which, const Alarm& alarm) noexcept {
  dmt::ProcessRecord& p = w.processes[self.process];
  const int i = cpu_index(which);
  p.cpu_interval_ns[i] = alarm.interval_ns;
  p.cpu_due_ns[i] = alarm.left_ns == 0 ? 0 : saturating_add(p.cpu_ns, alarm.left_ns);
}

}  // namespace

namespace wrap {

unsigned alarm(unsigned seconds) {
  Turn turn(Op::alarm);
  const Alarm old = read_alarm(turn.w);
  set_alarm(turn.w, {static_cast<std::int64_t>(seconds) * kNsPerSecond, 0});
  // As Linux: rounded to the nearest second, but not to 0.
  const std::int64_t seconds_left = (old.left_ns + kNsPerSecond / 2) / kNsPerSecond;
  return static_cast<unsigned>(seconds_left == 0 && old.left_ns > 0 ? 1 : seconds_left);
}

useconds_t ualarm(useconds_t value, useconds_t interval) {
  Turn turn(Op::ualarm);
  const Alarm old = read_alarm(turn.w);
  set_alarm(turn.w, {static_cast<std::int64_t>(value) * kNsPerMicrosecond,
                     static_cast<std::int64_t>(interval) * kNsPerMicrosecond});
  return static_cast<useconds_t>(old.left_ns / kNsPerMicrosecond);
}

int setitimer(__itimer_which_t which, const struct itimerval* v, struct itimerval* old) {
  if (v != nullptr && (!is_valid_time(v->it_value) || !is_valid_time(v->it_interval))) {
    return fail(EINVAL);
  }
  if (which != ITIMER_REAL && !is_cpu_timer(which)) return fail(EINVAL);
  // As Linux: a null value counts as zeros.
  const Alarm wanted = v == nullptr ? Alarm{} : Alarm{ns_of(v->it_value), ns_of(v->it_interval)};
  Turn turn(Op::setitimer);
  if (is_cpu_timer(which)) {
    fill(old, read_cpu_timer(turn.w, which));
    set_cpu_timer(turn.w, which, wanted);
    return 0;
  }
  fill(old, read_alarm(turn.w));
  return set_alarm(turn.w, wanted) ? 0 : fail(ENOMEM);
}

int getitimer(__itimer_which_t which, struct itimerval* v) {
  if (which != ITIMER_REAL && !is_cpu_timer(which)) return fail(EINVAL);
  Turn turn(Op::getitimer);
  fill(v, which == ITIMER_REAL ? read_alarm(turn.w) : read_cpu_timer(turn.w, which));
  return 0;
}

}  // namespace wrap

// --- POSIX timers --------------------------------------------------------------------------------

namespace {

using NotifyFunction = void (*)(union sigval);

// The function that a SIGEV_THREAD timer starts; the addresses belong to this process.
struct ThreadNotice {
  NotifyFunction function;
  union sigval value;
  pthread_attr_t attributes;
};
ThreadNotice notices[dmt::kPosixTimersMax];

// The data of a started thread, until the thread has read it.
struct Starting {
  std::atomic<bool> used;
  NotifyFunction function;
  union sigval value;
};
constexpr std::size_t kStartingMax = 64;
constinit Starting starting[kStartingMax] = {};
std::uint16_t notifier_of = 0;  // the process whose notifying thread was started

timer_t name_of(std::uint32_t timer) noexcept {
  return reinterpret_cast<timer_t>(static_cast<std::uintptr_t>(timer));
}
std::uint32_t index_of(timer_t t) noexcept {
  const auto word = reinterpret_cast<std::uintptr_t>(t);
  return word < dmt::kPosixTimersMax ? static_cast<std::uint32_t>(word) : dmt::kNoPosixTimer;
}

void* run_notice(void* given) noexcept {
  auto& start = *static_cast<Starting*>(given);
  const NotifyFunction function = start.function;
  const union sigval value = start.value;
  start.used.store(false, std::memory_order_release);
  function(value);
  return nullptr;
}

Starting& claim_starting() noexcept {
  for (;;) {
    for (Starting& s : starting) {
      if (!s.used.exchange(true, std::memory_order_acq_rel)) return s;
    }
    Turn turn(Op::sched_yield);
    turn.yield();
  }
}

// Waits for expirations and starts a thread for each.
void* start_notices(void*) noexcept {
  const InsideCrane inside;
  for (;;) {
    ThreadNotice notice;
    {
      Turn turn(Op::timer_create);
      exchange_mask(turn.w, ~0ull);
      std::uint32_t timer;
      while ((timer = dmt::take_thread_notification(turn.w, self.process)) == dmt::kNoPosixTimer) {
        turn.wait(dmt::notification_object(self.process));
      }
      notice = notices[timer];
    }
    Starting& start = claim_starting();
    start.function = notice.function;
    start.value = notice.value;
    pthread_t thread;
    if (create_thread(&thread, &notice.attributes, run_notice, &start) != 0) {
      start.used.store(false, std::memory_order_release);
    }
  }
  return nullptr;
}

bool start_notifier() noexcept {
  if (notifier_of == self.process) return true;
  pthread_attr_t detached;
  real::pthread_attr_init(&detached);
  real::pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (create_thread(&thread, &detached, start_notices, nullptr) != 0) return false;
  notifier_of = self.process;
  return true;
}

// Fills in the timer for `e` on clock `c`; returns an error number. REQUIRES the turn.
int describe(const dmt::Layout& w, clockid_t c, const struct sigevent& e,
             dmt::PosixTimer& t) noexcept {
  t = {};
  t.clock = c;
  t.process = self.process;
  t.slot = t.clock_slot = dmt::kNone;
  if (c == CLOCK_PROCESS_CPUTIME_ID) {
    t.counts = dmt::TimerClock::kProcess;
  } else if (c == CLOCK_THREAD_CPUTIME_ID) {
    t.counts = dmt::TimerClock::kThread;
    t.clock_slot = self.slot;
  } else if (!is_deadline_clock(c)) {
    return is_read_only_clock(c) ? EOPNOTSUPP : EINVAL;
  }
  t.notify = e.sigev_notify == SIGEV_NONE     ? dmt::Notify::kNothing
             : e.sigev_notify == SIGEV_THREAD ? dmt::Notify::kThread
                                              : dmt::Notify::kSignal;
  t.value = value_of(e.sigev_value);
  if (t.notify != dmt::Notify::kSignal) return 0;
  if (e.sigev_signo < 1 || e.sigev_signo > 64) return EINVAL;
  t.signo = static_cast<std::uint16_t>(e.sigev_signo);
  if (e.sigev_notify == SIGEV_SIGNAL) return 0;
  if (e.sigev_notify != SIGEV_THREAD_ID) return EINVAL;
  const ThreadEntry* target = find_thread_by_id(static_cast<std::uint32_t>(e._sigev_un._tid));
  if (target == nullptr) return EINVAL;
  t.slot = target->slot;
  t.slot_generation = w.slots[target->slot].generation;
  return 0;
}

void remember_notice(std::uint32_t timer, const struct sigevent& e) noexcept {
  ThreadNotice& n = notices[timer];
  n.function = e.sigev_notify_function;
  n.value = e.sigev_value;
  if (e.sigev_notify_attributes != nullptr) {
    std::memcpy(&n.attributes, e.sigev_notify_attributes, sizeof n.attributes);
  } else {
    real::pthread_attr_init(&n.attributes);
  }
  real::pthread_attr_setdetachstate(&n.attributes, PTHREAD_CREATE_DETACHED);
}

void fill_setting(const dmt::Layout& w, const dmt::PosixTimer& t, struct itimerspec* out) noexcept {
  out->it_value = to_timespec(dmt::time_left(w, t));
  out->it_interval = to_timespec(t.interval_ns);
}

// Returns when the timer is due on its clock; 0 = never. REQUIRES the turn.
std::int64_t due_of(const dmt::Layout& w, const dmt::PosixTimer& t, int flags,
                    const struct timespec& v) noexcept {
  if (v.tv_sec == 0 && v.tv_nsec == 0) return 0;
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  std::int64_t due;
  if (t.counts == dmt::TimerClock::kVirtual) {
    due = absolute ? deadline_at(w, t.clock, v) : deadline_after(w, to_ns(v));
  } else {
    const std::int64_t used = t.counts == dmt::TimerClock::kProcess ? w.processes[t.process].cpu_ns
                                                                    : w.slots[t.clock_slot].cpu_ns;
    due = absolute ? to_ns(v) : saturating_add(used, to_ns(v));
  }
  return due > 0 ? due : 1;
}

}  // namespace

namespace wrap {

int timer_create(clockid_t c, struct sigevent* e, timer_t* t) {
  struct sigevent event {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  if (e != nullptr) event = *e;
  if (event.sigev_notify == SIGEV_THREAD && !start_notifier()) return fail(EAGAIN);
  Turn turn(Op::timer_create);
  dmt::PosixTimer like;
  const int error = describe(turn.w, c, event, like);
  if (error != 0) return fail(error);
  const std::uint32_t timer = dmt::create_posix_timer(turn.w, like);
  if (timer == dmt::kNoPosixTimer) return fail(EAGAIN);
  if (e == nullptr) turn.w.posix_timers[timer].value = timer;
  if (like.notify == dmt::Notify::kThread) remember_notice(timer, event);
  *t = name_of(timer);
  turn.result(static_cast<std::uint64_t>(timer));
  return 0;
}

int timer_settime(timer_t name, int flags, const struct itimerspec* v, struct itimerspec* old) {
  Turn turn(Op::timer_settime);
  const std::uint32_t timer = index_of(name);
  const dmt::PosixTimer* t = dmt::find_posix_timer(turn.w, self.process, timer);
  if (t == nullptr || v == nullptr || !is_positive(v->it_value) || !is_positive(v->it_interval)) {
    return fail(EINVAL);
  }
  if (old != nullptr) fill_setting(turn.w, *t, old);
  dmt::set_posix_timer(turn.w, timer, due_of(turn.w, *t, flags, v->it_value),
                       to_ns(v->it_interval));
  return 0;
}

int timer_gettime(timer_t name, struct itimerspec* v) {
  Turn turn(Op::timer_gettime);
  const dmt::PosixTimer* t = dmt::find_posix_timer(turn.w, self.process, index_of(name));
  if (t == nullptr) return fail(EINVAL);
  fill_setting(turn.w, *t, v);
  return 0;
}

int timer_getoverrun(timer_t name) {
  Turn turn(Op::timer_getoverrun);
  const dmt::PosixTimer* t = dmt::find_posix_timer(turn.w, self.process, index_of(name));
  if (t == nullptr) return fail(EINVAL);
  turn.result(static_cast<std::uint64_t>(t->last_overrun));
  return static_cast<int>(t->last_overrun);
}

int timer_delete(timer_t name) {
  Turn turn(Op::timer_delete);
  const std::uint32_t timer = index_of(name);
  if (dmt::find_posix_timer(turn.w, self.process, timer) == nullptr) return fail(EINVAL);
  dmt::delete_posix_timer(turn.w, timer);
  return 0;
}

}  // namespace wrap
}  // namespace crane
