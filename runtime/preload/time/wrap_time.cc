// SPDX-License-Identifier: Apache-2.0
// Clocks, sleeping and timers in virtual time (DESIGN D6, D17).
#include <climits>
#include <cstring>

#include "dmt/posix_timers.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

constexpr long kCoarseNs = 4'000'000;  // a tick of 250 Hz
constexpr std::int64_t kNsPerMicrosecond = 1000;
constexpr std::int64_t kTicksPerSecond = 100;  // as sysconf(_SC_CLK_TCK) on Linux

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

// The kernel's numbers of other processes' and threads' CPU clocks.
constexpr int kClockOfThread = 4, kClockScheduled = 2, kClockKinds = 3, kClockBits = 3;
constexpr clockid_t cpu_clock_of(std::uint32_t id, int kind) noexcept {
  return static_cast<clockid_t>((~id << kClockBits) | static_cast<unsigned>(kind));
}

// The owner of a processor clock (dmt/posix_timers.h): a thread or a process; neither: no such
// clock.
struct Counted {
  std::uint16_t slot = dmt::kNone;
  std::uint16_t process = dmt::kNoProcess;

  bool is_there() const noexcept { return slot != dmt::kNone || process != dmt::kNoProcess; }
};

// REQUIRES the turn.
Counted counted_by(const dmt::Layout& w, clockid_t c) noexcept {
  if (c == CLOCK_PROCESS_CPUTIME_ID) return {.process = self.process};
  if (c == CLOCK_THREAD_CPUTIME_ID) return {.slot = self.slot};
  if ((c & kClockKinds) == kClockKinds) return {};
  const auto id = static_cast<std::uint32_t>(~(c >> kClockBits));
  if ((c & kClockOfThread) == 0) {
    return {.process = id == 0 ? self.process : dmt::find_process(w, id)};
  }
  const ThreadEntry* entry = find_thread_by_id(id);
  return {.slot = entry == nullptr ? dmt::kNone : entry->slot};
}

// Reads a processor clock, which advances at each reading; negative: no such clock.
std::int64_t read_cpu_clock(clockid_t c) noexcept {
  Turn turn(Op::clock_gettime);
  dmt::Layout& w = turn.w;
  const Counted counted = counted_by(w, c);
  if (!counted.is_there()) return -1;
  if (counted.slot != dmt::kNone) {
    dmt::use_processor(w, counted.slot, 1);
    return w.slots[counted.slot].cpu_ns;
  }
  if (c == CLOCK_PROCESS_CPUTIME_ID) dmt::use_processor(w, self.slot, 1);
  return w.processes[counted.process].cpu_ns;
}

bool is_clock(clockid_t c) noexcept {
  if (c >= 0) return is_wall_clock(c) || is_monotonic_clock(c) || is_cpu_clock(c);
  Turn turn(Op::clock_getres);
  return counted_by(turn.w, c).is_there();
}

std::int64_t cpu_now() noexcept { return read_cpu_clock(CLOCK_PROCESS_CPUTIME_ID); }

// Sleeps until a deadline; returns 0, or EINTR and the remaining time.
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
  if (!is_positive(t)) return EINVAL;
  Turn turn(op, Turn::kCancellationPoint);
  return sleep_until(turn, deadline_after(turn.w, to_ns(t)), left);
}

}  // namespace

namespace {

// The processor time of the children that were waited for.
std::int64_t children_cpu() noexcept {
  Turn turn(Op::getrusage);
  return turn.w.processes[self.process].children_cpu_ns;
}

}  // namespace

namespace wrap {

int clock_gettime(clockid_t c, struct timespec* t) {
  if (is_wall_clock(c)) {
    *t = to_timespec(virtual_wall_now());
  } else if (is_monotonic_clock(c)) {
    *t = to_timespec(virtual_now());
  } else if (is_cpu_clock(c)) {
    const std::int64_t used = read_cpu_clock(c);
    if (used < 0) return fail(EINVAL);
    *t = to_timespec(used);
  } else {
    return fail(EINVAL);
  }
  return 0;
}

int clock_getres(clockid_t c, struct timespec* t) {
  if (!is_clock(c)) return fail(EINVAL);
  const bool coarse = c == CLOCK_REALTIME_COARSE || c == CLOCK_MONOTONIC_COARSE;
  if (t != nullptr) *t = {0, coarse ? kCoarseNs : 1};
  return 0;
}

int clock_settime(clockid_t c, const struct timespec* t) {
  return fail(c != CLOCK_REALTIME || !is_positive(*t) ? EINVAL : EPERM);
}
int settimeofday(const struct timeval*, const struct timezone*) { return fail(EPERM); }
int adjtime(const struct timeval*, struct timeval*) { return fail(EPERM); }

int clock_getcpuclockid(pid_t p, clockid_t* c) {
  Turn turn(Op::clock_getcpuclockid);
  if (p != 0 && dmt::find_process(turn.w, static_cast<std::uint32_t>(p)) == dmt::kNoProcess) {
    return ESRCH;
  }
  *c = p == 0 ? CLOCK_PROCESS_CPUTIME_ID
              : cpu_clock_of(static_cast<std::uint32_t>(p), kClockScheduled);
  return 0;
}
int pthread_getcpuclockid(pthread_t p, clockid_t* c) {
  Turn turn(Op::pthread_getcpuclockid);
  const ThreadEntry* entry = find_thread(p);
  if (entry == nullptr || entry->finished) return ESRCH;
  *c = cpu_clock_of(entry->thread_id, kClockOfThread | kClockScheduled);
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
    t->tms_cutime = children_cpu() / (kNsPerSecond / kTicksPerSecond);
  }
  return virtual_now() / (kNsPerSecond / kTicksPerSecond);
}

int getrusage(__rusage_who_t who, struct rusage* r) {
  if (who != RUSAGE_SELF && who != RUSAGE_CHILDREN && who != RUSAGE_THREAD) return fail(EINVAL);
  std::memset(r, 0, sizeof *r);
  if (who == RUSAGE_CHILDREN) {
    r->ru_utime = to_timeval(children_cpu());
    return 0;
  }
  r->ru_utime = to_timeval(
      read_cpu_clock(who == RUSAGE_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID));
  return 0;
}

// --- sleeping ------------------------------------------------------------------------------------

int nanosleep(const struct timespec* t, struct timespec* r) {
  if (!is_readable(t, sizeof *t)) return fail(EFAULT);
  std::int64_t left = 0;
  const int error = sleep_for(Op::nanosleep, *t, left);
  if (error == EINTR && r != nullptr) *r = to_timespec(left);
  return error == 0 ? 0 : fail(error);
}

int clock_nanosleep(clockid_t c, int flags, const struct timespec* t, struct timespec* r) {
  if (is_read_only_clock(c)) return EOPNOTSUPP;
  if (c == CLOCK_THREAD_CPUTIME_ID || (!is_deadline_clock(c) && !is_cpu_clock(c))) return EINVAL;
  if (!is_readable(t, sizeof *t)) return EFAULT;
  std::int64_t left = 0;
  if ((flags & TIMER_ABSTIME) == 0) {
    const int error = sleep_for(Op::clock_nanosleep, *t, left);
    if (error == EINTR && r != nullptr) *r = to_timespec(left);
    return error;
  }
  if (!is_positive(*t)) return EINVAL;
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

}  // namespace crane
