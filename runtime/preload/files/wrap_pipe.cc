// SPDX-License-Identifier: Apache-2.0
// Pipes (the kernel's, with their bytes counted) and wholly virtual descriptors: eventfd, timerfd,
// signalfd.
#include <algorithm>

#include "runtime/preload/files/counter.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/sockets/stream.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

// A timerfd keeps its clock where a signalfd keeps its mask.
clockid_t clock_of(const dmt::CounterState& c) noexcept {
  return static_cast<clockid_t>(c.signal_mask);
}

int make_pipe(Turn& turn, int* fds, int flags) noexcept {
  // The kernel writes the numbers to the caller's memory and returns EFAULT for a bad address.
  const long result = raw_syscall(SYS_pipe2, fds, flags);
  if (result < 0) return static_cast<int>(result);
  const int made[2] = {fds[0], fds[1]};
  raw_syscall(SYS_fcntl, made[0], F_SETPIPE_SZ, stream::kPipeKernelBytes);
  if (!dmt::has_room_for_files(turn.w, 2)) {
    for (const int fd : made) raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  const std::uint32_t from = dmt::create_file(turn.w, own_slot(), FileKind::kPipeRead);
  const std::uint32_t to = dmt::create_file(turn.w, own_slot(), FileKind::kPipeWrite);
  const bool nonblocking = (flags & O_NONBLOCK) != 0;
  turn.w.files[from].nonblocking = turn.w.files[to].nonblocking = nonblocking;
  stream::connect_ends(turn.w, from, to, stream::kPipeCapacity);
  stream::set_packets(turn.w, to, (flags & O_DIRECT) != 0);
  const std::uint32_t files[2] = {from, to};
  return bind_two(turn, made, files, fds);
}

FileRecord* record_of(int fd, FileKind kind) noexcept {
  FileRecord* f = bound_record(fd);
  return f != nullptr && f->kind == kind ? f : nullptr;
}

int no_such(int fd) noexcept { return is_open(fd) ? -EINVAL : -EBADF; }

void read_timer(const dmt::Layout& w, const dmt::CounterState& c, struct itimerspec* out) noexcept {
  const dmt::TimerRecord& t = w.timers[c.timer];
  const std::int64_t left =
      t.heap == 0 ? 0 : std::max<std::int64_t>(t.deadline_ns - w.scheduler.now_ns, 1);
  out->it_value = to_timespec(left);
  out->it_interval = to_timespec(c.interval_ns);
}

int set_timer(Turn& turn, std::uint32_t file, int flags, const struct itimerspec* v) noexcept {
  if ((flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) != 0) return -EINVAL;
  dmt::CounterState& c = turn.w.files[file].counter;
  if (!is_positive(v->it_value) || !is_positive(v->it_interval)) return -EINVAL;
  c.count = 0;
  c.interval_ns = to_ns(v->it_interval);
  dmt::disarm_timer(turn.w, c.timer);
  if (v->it_value.tv_sec != 0 || v->it_value.tv_nsec != 0) {
    const bool absolute = (flags & TFD_TIMER_ABSTIME) != 0;
    dmt::arm_timer(turn.w, c.timer,
                   absolute ? deadline_at(turn.w, clock_of(c), v->it_value)
                            : deadline_after(turn.w, to_ns(v->it_value)));
    if (turn.w.timers[c.timer].deadline_ns <= turn.now()) {
      dmt::disarm_timer(turn.w, c.timer);
      dmt::timer_expired(turn.w, file);
    }
  }
  dmt::refresh_readiness(turn.w, file, false);
  return 0;
}

}  // namespace

int pipe2(int* fds, int flags) {
  Turn turn(Op::pipe2);
  return finish_int(turn, make_pipe(turn, fds, flags));
}
int pipe(int* fds) {
  Turn turn(Op::pipe);
  return finish_int(turn, make_pipe(turn, fds, 0));
}

int eventfd(unsigned n, int flags) {
  Turn turn(Op::eventfd);
  const int fd = bind_virtual(turn, raw_syscall(SYS_eventfd2, n, flags), FileKind::kEventFd,
                              (flags & EFD_NONBLOCK) != 0);
  if (fd >= 0) {
    const std::uint32_t file = bound_file(fd);
    turn.w.files[file].counter.count = n;
    turn.w.files[file].counter.semaphore = (flags & EFD_SEMAPHORE) != 0;
    dmt::refresh_readiness(turn.w, file, false);
  }
  return finish_int(turn, fd);
}
int eventfd_read(int fd, eventfd_t* value) {
  return wrap::read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}
int eventfd_write(int fd, eventfd_t value) {
  return wrap::write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

int timerfd_create(clockid_t c, int flags) {
  Turn turn(Op::timerfd_create);
  if (!is_deadline_clock(c)) return finish_int(turn, -EINVAL);
  // The placeholder's clock does not matter, and the alarm clocks would need a capability.
  const int fd = bind_virtual(turn, raw_syscall(SYS_timerfd_create, CLOCK_MONOTONIC, flags),
                              FileKind::kTimerFd, (flags & TFD_NONBLOCK) != 0);
  if (fd < 0) return finish_int(turn, fd);
  bound_record(fd)->counter.signal_mask = static_cast<std::uint64_t>(c);
  return finish_int(turn, fd);
}

int timerfd_settime(int fd, int flags, const struct itimerspec* v, struct itimerspec* old) {
  Turn turn(Op::timerfd_settime);
  const FileRecord* f = record_of(fd, FileKind::kTimerFd);
  if (f == nullptr) return finish_int(turn, no_such(fd));
  struct itimerspec before;
  read_timer(turn.w, f->counter, &before);
  const int error = set_timer(turn, bound_file(fd), flags, v);
  if (error == 0 && old != nullptr) *old = before;
  return finish_int(turn, error);
}

int timerfd_gettime(int fd, struct itimerspec* v) {
  Turn turn(Op::timerfd_gettime);
  const FileRecord* f = record_of(fd, FileKind::kTimerFd);
  if (f == nullptr) return finish_int(turn, no_such(fd));
  read_timer(turn.w, f->counter, v);
  return finish_int(turn, 0);
}

int signalfd(int fd, const sigset_t* mask, int flags) {
  Turn turn(Op::signalfd);
  int made = fd;
  if (fd < 0) {
    made = bind_virtual(turn, raw_syscall(SYS_signalfd4, -1, mask, sizeof(std::uint64_t), flags),
                        FileKind::kSignalFd, (flags & SFD_NONBLOCK) != 0);
    if (made < 0) return finish_int(turn, made);
  }
  FileRecord* f = record_of(made, FileKind::kSignalFd);
  if (f == nullptr) return finish_int(turn, no_such(fd));
  f->port = self.process;
  f->counter.signal_mask = bits_of(*mask) & ~(bit_of(SIGKILL) | bit_of(SIGSTOP));
  const std::uint64_t pending = turn.w.processes[self.process].pending_signals;
  f->counter.count = (pending & f->counter.signal_mask) != 0 ? 1 : 0;
  dmt::refresh_readiness(turn.w, bound_file(made), false);
  return finish_int(turn, made);
}

}  // namespace crane::wrap
