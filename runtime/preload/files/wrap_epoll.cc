// SPDX-License-Identifier: Apache-2.0
// epoll is wholly virtual; the kernel's epoll descriptor only provides a number. Files are returned
// in the order in which they became ready by turn (D19, rule 21).
#include <algorithm>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

// The most events of one call; the next call returns the others.
constexpr int kEventsMax = 256;
constexpr std::uint32_t kExclusiveMay = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP |
                                        static_cast<std::uint32_t>(EPOLLET) | EPOLLEXCLUSIVE;

std::uint32_t epoll_file(int ep) noexcept {
  const std::uint32_t file = bound_file(ep);
  return file != 0 && without_turn().files[file].kind == FileKind::kEpoll ? file : 0;
}

int no_epoll(int ep) noexcept { return is_open(ep) ? -EINVAL : -EBADF; }

int make_epoll(Turn& turn, int flags) noexcept {
  const long fd = raw_syscall(SYS_epoll_create1, flags);
  if (fd < 0) return static_cast<int>(fd);
  const std::uint32_t file = dmt::create_file(turn.w, own_slot(), FileKind::kEpoll);
  if (file == 0) {
    raw_syscall(SYS_close, fd);
    return -ENFILE;
  }
  return bind_new(turn, fd, file);
}

int control(Turn& turn, int ep, int op, int fd, const struct epoll_event* e) noexcept {
  const std::uint32_t epoll = epoll_file(ep);
  if (epoll == 0) return no_epoll(ep);
  const std::uint32_t file = bound_file(fd);
  if (file == 0) return is_open(fd) ? -EPERM : -EBADF;  // as Linux for regular files
  if (file == epoll) return -EINVAL;
  if (e == nullptr && op != EPOLL_CTL_DEL) return -EFAULT;
  const std::uint32_t watch = dmt::epoll_find(turn.w, epoll, fd, file);
  switch (op) {
    case EPOLL_CTL_ADD:
      if (watch != 0) return -EEXIST;
      if (dmt::epoll_would_loop(turn.w, epoll, file)) return -ELOOP;
      if ((e->events & EPOLLEXCLUSIVE) != 0 &&
          ((e->events & ~kExclusiveMay) != 0 || turn.w.files[file].kind == FileKind::kEpoll)) {
        return -EINVAL;
      }
      return dmt::epoll_add(turn.w, epoll, fd, file, e->events, e->data.u64) != 0 ? 0 : -ENOSPC;
    case EPOLL_CTL_MOD:
      if (watch == 0) return -ENOENT;
      if ((e->events & EPOLLEXCLUSIVE) != 0 ||
          (turn.w.watches[watch].flags & dmt::kWatchExclusive) != 0) {
        return -EINVAL;
      }
      dmt::epoll_modify(turn.w, watch, e->events, e->data.u64);
      return 0;
    case EPOLL_CTL_DEL:
      if (watch == 0) return -ENOENT;
      dmt::epoll_remove(turn.w, watch);
      return 0;
    default:
      return -EINVAL;
  }
}

int wait_until(Turn& turn, int ep, struct epoll_event* e, int n,
               std::int64_t deadline_ns) noexcept {
  const std::uint32_t epoll = epoll_file(ep);
  if (epoll == 0) return no_epoll(ep);
  if (n <= 0) return -EINVAL;
  const auto most = static_cast<std::uint32_t>(std::min(n, kEventsMax));
  const Scratch<dmt::EpollReady> ready(most);
  WaitPolicy policy;
  policy.restarts = kNeverRestarts;
  policy.deadline_ns = deadline_ns;
  for (;;) {
    const std::uint32_t count = dmt::epoll_collect(turn.w, epoll, ready.data(), most);
    for (std::uint32_t i = 0; i < count; ++i) {
      e[i].events = ready[i].events;
      e[i].data.u64 = ready[i].data;
    }
    if (count > 0) {
      self.empty_polls = 0;
      return static_cast<int>(count);
    }
    if (deadline_ns <= turn.now()) {
      note_empty_poll(turn);
      return 0;
    }
    const int error = await_change(turn, ep, epoll, policy);
    if (error == -EAGAIN) return 0;
    if (error < 0) return error;
  }
}

int wait_masked(Turn& turn, int ep, struct epoll_event* e, int n, std::int64_t deadline_ns,
                const sigset_t* mask) noexcept {
  if (mask == nullptr) return wait_until(turn, ep, e, n, deadline_ns);
  TemporaryMask temporary(turn.w, mask);
  const int result = wait_until(turn, ep, e, n, deadline_ns);
  temporary.restore();
  return result;
}

std::int64_t deadline_of(const Turn& turn, int ms) noexcept {
  if (ms < 0) return dmt::kNoDeadline;
  return ms == 0 ? turn.now() : deadline_after(turn.w, std::int64_t{ms} * 1'000'000);
}

}  // namespace

int epoll_create(int size) {
  Turn turn(Op::epoll_create);
  return finish_int(turn, size <= 0 ? -EINVAL : make_epoll(turn, 0));
}
int epoll_create1(int flags) {
  Turn turn(Op::epoll_create1);
  return finish_int(turn, make_epoll(turn, flags));
}

int epoll_ctl(int ep, int op, int fd, struct epoll_event* e) {
  Turn turn(Op::epoll_ctl);
  return finish_int(turn, control(turn, ep, op, fd, e));
}

int epoll_wait(int ep, struct epoll_event* e, int n, int ms) {
  Turn turn(Op::epoll_wait, Turn::kCancellationPoint);
  return finish_int(turn, wait_until(turn, ep, e, n, deadline_of(turn, ms)));
}
int epoll_pwait(int ep, struct epoll_event* e, int n, int ms, const sigset_t* mask) {
  Turn turn(Op::epoll_pwait, Turn::kCancellationPoint);
  return finish_int(turn, wait_masked(turn, ep, e, n, deadline_of(turn, ms), mask));
}
int epoll_pwait2(int ep, struct epoll_event* e, int n, const struct timespec* t,
                 const sigset_t* mask) {
  Turn turn(Op::epoll_pwait2, Turn::kCancellationPoint);
  if (t != nullptr && !is_positive(*t)) return finish_int(turn, -EINVAL);
  std::int64_t deadline = dmt::kNoDeadline;
  if (t != nullptr) deadline = to_ns(*t) == 0 ? turn.now() : deadline_after(turn.w, to_ns(*t));
  return finish_int(turn, wait_masked(turn, ep, e, n, deadline, mask));
}

}  // namespace crane::wrap
