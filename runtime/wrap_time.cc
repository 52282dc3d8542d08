// SPDX-License-Identifier: Apache-2.0
// Clocks, sleeping and timers in virtual time (DESIGN D6, D17).
#include <climits>
#include <cstring>

#include "dmt/base/log.h"
#include "runtime/blocking.h"
#include "runtime/real.h"
#include "runtime/vtime.h"
#include "runtime/wrappers.h"

namespace crane {
namespace {

constexpr std::int64_t kNsPerMicrosecond = 1000;
constexpr std::int64_t kTicksPerSecond = 100;  // as sysconf(_SC_CLK_TCK) on Linux

// CPU clocks count virtual time from the first read on: how long a processor really took is
// nobody's business but this replica's.
std::int64_t cpu_origin = -1;

std::int64_t cpu_now() noexcept {
  const std::int64_t now = virtual_now();
  if (cpu_origin < 0) cpu_origin = now - 1;
  return now - cpu_origin;
}

bool is_wall_clock(clockid_t c) noexcept {
  return c == CLOCK_REALTIME || c == CLOCK_REALTIME_COARSE || c == CLOCK_TAI ||
         c == CLOCK_REALTIME_ALARM;
}

bool is_monotonic_clock(clockid_t c) noexcept {
  return c == CLOCK_MONOTONIC || c == CLOCK_MONOTONIC_RAW || c == CLOCK_MONOTONIC_COARSE ||
         c == CLOCK_BOOTTIME || c == CLOCK_BOOTTIME_ALARM;
}

// The fixed CPU clocks, and the negative numbers of clock_getcpuclockid.
bool is_cpu_clock(clockid_t c) noexcept {
  return c == CLOCK_PROCESS_CPUTIME_ID || c == CLOCK_THREAD_CPUTIME_ID || c < 0;
}

int fail(int error) noexcept {
  errno = error;
  return -1;
}

// Sleeps until a deadline; 0, or EINTR with what is left of it.
int sleep_until(Turn& turn, std::int64_t deadline, std::int64_t& left) noexcept {
  left = 0;
  for (;;) {
    const dmt::WakeReason why = turn.wait(0, deadline);
    if (why == dmt::WakeReason::kTimeout) return 0;
    // nanosleep never restarts after a handler.
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kNeverRestarts)) {
      left = deadline > turn.now() ? deadline - turn.now() : 0;
      return EINTR;
    }
  }
}

int sleep_for(Op op, const struct timespec& t, std::int64_t& left) noexcept {
  if (!is_valid(t) || t.tv_sec < 0) return EINVAL;
  Turn turn(op, Turn::kCancellationPoint);
  return sleep_until(turn, deadline_after(turn.w, to_ns(t)), left);
}

}  // namespace

namespace wrap {

int clock_gettime(clockid_t c, struct timespec* t) {
  if (is_wall_clock(c)) {
    *t = to_timespec(virtual_wall_now());
  } else if (is_monotonic_clock(c)) {
    *t = to_timespec(virtual_now());
  } else if (is_cpu_clock(c)) {
    *t = to_timespec(cpu_now());
  } else {
    return fail(EINVAL);
  }
  return 0;
}

int clock_getres(clockid_t c, struct timespec* t) {
  if (!is_wall_clock(c) && !is_monotonic_clock(c) && !is_cpu_clock(c)) return fail(EINVAL);
  if (t != nullptr) *t = {0, 1};
  return 0;
}

int clock_settime(clockid_t, const struct timespec*) { return fail(EPERM); }
int settimeofday(const struct timeval*, const struct timezone*) { return fail(EPERM); }
int adjtime(const struct timeval*, struct timeval*) { return fail(EPERM); }

int clock_getcpuclockid(pid_t, clockid_t* c) {
  *c = CLOCK_PROCESS_CPUTIME_ID;
  return 0;
}
int pthread_getcpuclockid(pthread_t, clockid_t* c) {
  *c = CLOCK_THREAD_CPUTIME_ID;
  return 0;
}

int gettimeofday(struct timeval* t, void* z) {
  if (t != nullptr) *t = to_timeval(virtual_wall_now());
  if (z != nullptr) std::memset(z, 0, sizeof(struct timezone));
  return 0;
}

time_t time(time_t* t) {
  const time_t now = virtual_wall_now() / kNsPerSecond;
  if (t != nullptr) *t = now;
  return now;
}

int ftime(struct timeb* t) {
  const std::int64_t now = virtual_wall_now();
  std::memset(t, 0, sizeof *t);
  t->time = now / kNsPerSecond;
  t->millitm = static_cast<unsigned short>(now % kNsPerSecond / 1'000'000);
  return 0;
}

int timespec_get(struct timespec* t, int base) {
  if (base != TIME_UTC) return 0;
  *t = to_timespec(virtual_wall_now());
  return base;
}

clock_t clock() { return cpu_now() / kNsPerMicrosecond; }

clock_t times(struct tms* t) {
  const std::int64_t cpu = cpu_now();
  if (t != nullptr) {
    std::memset(t, 0, sizeof *t);
    t->tms_utime = cpu / (kNsPerSecond / kTicksPerSecond);
  }
  return virtual_now() / (kNsPerSecond / kTicksPerSecond);
}

int getrusage(__rusage_who_t who, struct rusage* r) {
  if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD) return fail(EINVAL);
  std::memset(r, 0, sizeof *r);
  if (who != RUSAGE_CHILDREN) r->ru_utime = to_timeval(cpu_now());
  return 0;
}

// --- sleeping  -----------------------------------------------------------------------------------

int nanosleep(const struct timespec* t, struct timespec* r) {
  std::int64_t left = 0;
  const int error = sleep_for(Op::nanosleep, *t, left);
  if (error == EINTR && r != nullptr) *r = to_timespec(left);
  return error == 0 ? 0 : fail(error);
}

int clock_nanosleep(clockid_t c, int flags, const struct timespec* t, struct timespec* r) {
  if (c == CLOCK_THREAD_CPUTIME_ID || (!is_deadline_clock(c) && !is_cpu_clock(c))) return EINVAL;
  std::int64_t left = 0;
  if ((flags & TIMER_ABSTIME) == 0) {
    const int error = sleep_for(Op::clock_nanosleep, *t, left);
    if (error == EINTR && r != nullptr) *r = to_timespec(left);
    return error;
  }
  if (!is_valid(*t)) return EINVAL;
  Turn turn(Op::clock_nanosleep, Turn::kCancellationPoint);
  return sleep_until(turn, deadline_at(turn.w, c, *t), left);
}

int usleep(useconds_t us) {
  std::int64_t left = 0;
  const struct timespec t = to_timespec(static_cast<std::int64_t>(us) * kNsPerMicrosecond);
  const int error = sleep_for(Op::usleep, t, left);
  return error == 0 ? 0 : fail(error);
}

unsigned sleep(unsigned seconds) {
  std::int64_t left = 0;
  sleep_for(Op::sleep, {static_cast<time_t>(seconds), 0}, left);
  return static_cast<unsigned>((left + kNsPerSecond - 1) / kNsPerSecond);
}

int thrd_sleep(const struct timespec* t, struct timespec* r) {
  std::int64_t left = 0;
  const int error = sleep_for(Op::thrd_sleep, *t, left);
  if (error == EINTR && r != nullptr) *r = to_timespec(left);
  if (error == 0) return 0;
  return error == EINTR ? -1 : -2;
}

}  // namespace wrap

// --- the process' alarm  -------------------------------------------------------------------------

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

// REQUIRES the turn.  False when there is no timer left.
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
std::int64_t to_ns(const struct timeval& t) noexcept {
  return crane::to_ns(timespec{t.tv_sec, t.tv_usec * kNsPerMicrosecond});
}

void fill(struct itimerval* out, const Alarm& alarm) noexcept {
  if (out == nullptr) return;
  out->it_value = to_timeval(alarm.left_ns);
  out->it_interval = to_timeval(alarm.interval_ns);
}

bool warned_about_cpu_timers = false;

}  // namespace

namespace wrap {

unsigned alarm(unsigned seconds) {
  Turn turn(Op::alarm);
  const Alarm old = read_alarm(turn.w);
  set_alarm(turn.w, {static_cast<std::int64_t>(seconds) * kNsPerSecond, 0});
  return static_cast<unsigned>((old.left_ns + kNsPerSecond - 1) / kNsPerSecond);
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
  Turn turn(Op::setitimer);
  if (which != ITIMER_REAL) {
    // Accepted, since programs treat a refusal as fatal; what it limits is CPU time, which a
    // replica must not measure.
    if (!warned_about_cpu_timers) Message() << "CPU-time interval timers never expire";
    warned_about_cpu_timers = true;
    fill(old, {});
    return 0;
  }
  fill(old, read_alarm(turn.w));
  if (v == nullptr) return 0;
  const Alarm wanted{to_ns(v->it_value), to_ns(v->it_interval)};
  return set_alarm(turn.w, wanted) ? 0 : fail(ENOMEM);
}

int getitimer(__itimer_which_t which, struct itimerval* v) {
  Turn turn(Op::getitimer);
  fill(v, which == ITIMER_REAL ? read_alarm(turn.w) : Alarm{});
  return 0;
}

// --- POSIX timers: not yet  ----------------------------------------------------------------------

int timer_create(clockid_t, struct sigevent*, timer_t*) {
  Message() << "timer_create() is not supported: use timerfd_create() or setitimer()";
  return fail(ENOTSUP);
}
int timer_settime(timer_t, int, const struct itimerspec*, struct itimerspec*) {
  return fail(EINVAL);
}
int timer_gettime(timer_t, struct itimerspec*) { return fail(EINVAL); }
int timer_getoverrun(timer_t) { return fail(EINVAL); }
int timer_delete(timer_t) { return fail(EINVAL); }

}  // namespace wrap
}  // namespace crane
