// SPDX-License-Identifier: Apache-2.0
// poll and select. Readiness comes from the table of files, never from the kernel (rule 10), and
// time is virtual. A thread that blocks watches its files and sleeps in the scheduler.

#include <algorithm>
#include <cstring>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/fortify.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/blocking.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

constexpr std::size_t kDescriptorsMax = dmt::kFdsMax;
constexpr std::uint32_t kNormal = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;

// poll has two names for each of these events.
std::uint32_t with_aliases(dmt::Readiness r) noexcept {
  return r | ((r & dmt::kIn) != 0 ? POLLRDNORM : 0u) | ((r & dmt::kOut) != 0 ? POLLWRNORM : 0u);
}
std::uint32_t without_aliases(std::uint32_t events) noexcept {
  return events | ((events & POLLRDNORM) != 0 ? dmt::kIn : 0) |
         ((events & POLLWRNORM) != 0 ? dmt::kOut : 0);
}

// A signalfd shows each thread the signals that are pending for it and for its process.
dmt::Readiness level_for_caller(const dmt::Layout& w, std::uint32_t file) noexcept {
  const FileRecord& f = w.files[file];
  if (f.kind != FileKind::kSignalFd || f.port != self.process) return dmt::level_of(w, file);
  const std::uint64_t pending =
      w.slots[self.slot].pending_signals | w.processes[self.process].pending_signals;
  return (pending & f.counter.signal_mask) != 0 ? dmt::kIn : 0;
}

short ready_events(const dmt::Layout& w, const struct pollfd& p) noexcept {
  if (p.fd < 0) return 0;
  const auto events = static_cast<std::uint32_t>(static_cast<unsigned short>(p.events));
  const std::uint32_t file = bound_file(p.fd);
  if (file == 0) {
    if (!is_open(p.fd)) return POLLNVAL;
    return static_cast<short>(events & kNormal);  // regular files are always ready
  }
  const std::uint32_t now = with_aliases(level_for_caller(w, file));
  return static_cast<short>(now & (events | POLLERR | POLLHUP));
}

int evaluate(const dmt::Layout& w, struct pollfd* fds, nfds_t n) noexcept {
  int ready = 0;
  for (nfds_t i = 0; i < n; ++i) {
    fds[i].revents = ready_events(w, fds[i]);
    if (fds[i].revents != 0) ++ready;
  }
  return ready;
}

// The watches of one call; they are removed before anything can leave the call by another way.
class Watches {
 public:
  Watches(Turn& turn, std::size_t most) noexcept : turn_(turn), ids_(most) {}
  bool add(const struct pollfd* fds, nfds_t n) noexcept {
    for (nfds_t i = 0; i < n; ++i) {
      const std::uint32_t file = fds[i].fd < 0 ? 0 : bound_file(fds[i].fd);
      if (file == 0) continue;
      const auto events = static_cast<std::uint32_t>(static_cast<unsigned short>(fds[i].events));
      const std::uint32_t id =
          dmt::watch_by_slot(turn_.w, own_slot(), file, without_aliases(events));
      if (id == 0) return false;
      ids_[count_++] = id;
    }
    return true;
  }
  void drop() noexcept {
    while (count_ > 0) dmt::drop_watch(turn_.w, ids_[--count_]);
  }

 private:
  Turn& turn_;
  const Scratch<std::uint32_t> ids_;
  std::size_t count_ = 0;
};

// Returns the number of ready descriptors, 0 at the deadline, or -EINTR.
int poll_until(Turn& turn, struct pollfd* fds, nfds_t n, std::int64_t deadline_ns) noexcept {
  Watches watches(turn, n);
  for (;;) {
    const int ready = evaluate(turn.w, fds, n);
    if (ready > 0) return ready;
    if (deadline_ns <= turn.now()) {
      note_empty_poll(turn);
      return 0;
    }
    if (!watches.add(fds, n)) {
      watches.drop();
      return -ENOMEM;
    }
    const dmt::WakeReason why = turn.wait(0, deadline_ns);
    watches.drop();
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kNeverRestarts)) {
      return -EINTR;
    }
  }
}

int poll_masked(Turn& turn, struct pollfd* fds, nfds_t n, std::int64_t deadline_ns,
                const sigset_t* mask) noexcept {
  if (n > kDescriptorsMax) return -EINVAL;
  if (!is_writable(fds, n * sizeof *fds)) return -EFAULT;
  if (mask == nullptr) return poll_until(turn, fds, n, deadline_ns);
  TemporaryMask temporary(turn.w, mask);
  const int result = poll_until(turn, fds, n, deadline_ns);
  temporary.restore();
  return result;
}

std::int64_t deadline_in(const Turn& turn, std::int64_t ns) noexcept {
  return ns == 0 ? turn.now() : deadline_after(turn.w, ns);
}

// --- select --------------------------------------------------------------------------------------

bool has(const fd_set* set, int fd) noexcept {
  if (set == nullptr) return false;
  const auto* words = reinterpret_cast<const unsigned long*>(set);
  return (words[fd / 64] >> (fd % 64) & 1) != 0;
}
void put(fd_set* set, int fd) noexcept {
  reinterpret_cast<unsigned long*>(set)[fd / 64] |= 1ul << (fd % 64);
}
void clear(fd_set* set, int n) noexcept {
  if (set != nullptr) std::memset(set, 0, static_cast<std::size_t>((n + 63) / 64) * 8);
}

constexpr short kReadEvents = POLLIN | POLLRDNORM | POLLRDBAND;
constexpr short kWriteEvents = POLLOUT | POLLWRNORM;

// Converts the sets to a list of descriptors; returns their number.
nfds_t collect(int n, const fd_set* r, const fd_set* w, const fd_set* e,
               struct pollfd* out) noexcept {
  nfds_t count = 0;
  for (int fd = 0; fd < n; ++fd) {
    const int events = (has(r, fd) ? kReadEvents : 0) | (has(w, fd) ? kWriteEvents : 0) |
                       (has(e, fd) ? POLLPRI : 0);
    if (events != 0) out[count++] = {fd, static_cast<short>(events), 0};
  }
  return count;
}

// Writes the results back into the sets; returns the number of bits.
int spread(int n, fd_set* r, fd_set* w, fd_set* e, const struct pollfd* fds,
           nfds_t count) noexcept {
  clear(r, n);
  clear(w, n);
  clear(e, n);
  int bits = 0;
  for (nfds_t i = 0; i < count; ++i) {
    const struct pollfd& p = fds[i];
    const int hung = p.revents & (POLLHUP | POLLERR);
    if ((p.events & POLLIN) != 0 && ((p.revents & kReadEvents) | hung) != 0) {
      put(r, p.fd);
      ++bits;
    }
    if ((p.events & POLLOUT) != 0 && ((p.revents & kWriteEvents) | (p.revents & POLLERR)) != 0) {
      put(w, p.fd);
      ++bits;
    }
    if ((p.events & POLLPRI) != 0 && (p.revents & POLLPRI) != 0) {
      put(e, p.fd);
      ++bits;
    }
  }
  return bits;
}

// Selects with the signal mask `mask` during the wait; null: the mask is unchanged.
int select_masked(Turn& turn, int n, fd_set* r, fd_set* w, fd_set* e, std::int64_t deadline_ns,
                  const sigset_t* mask) noexcept {
  if (n < 0) return -EINVAL;
  n = std::min(n, static_cast<int>(dmt::kFdsMax));
  const Scratch<struct pollfd> fds(static_cast<std::size_t>(n));
  const nfds_t count = collect(n, r, w, e, fds.data());
  for (nfds_t i = 0; i < count; ++i) {
    if (is_plain(fds[i].fd) && !is_open(fds[i].fd)) return -EBADF;
  }
  const int result = poll_masked(turn, fds.data(), count, deadline_ns, mask);
  return result < 0 ? result : spread(n, r, w, e, fds.data(), result == 0 ? 0 : count);
}

}  // namespace

int poll(struct pollfd* fds, nfds_t n, int ms) {
  Turn turn(Op::poll, Turn::kCancellationPoint);
  const std::int64_t deadline =
      ms < 0 ? dmt::kNoDeadline : deadline_in(turn, std::int64_t{ms} * 1'000'000);
  return finish_int(turn, poll_masked(turn, fds, n, deadline, nullptr));
}
int __poll_chk(struct pollfd* fds, nfds_t n, int ms, size_t room) {
  fortify::check_room(n, room / sizeof *fds);
  return wrap::poll(fds, n, ms);
}

int ppoll(struct pollfd* fds, nfds_t n, const struct timespec* t, const sigset_t* mask) {
  Turn turn(Op::ppoll, Turn::kCancellationPoint);
  if (t != nullptr && !is_positive(*t)) return finish_int(turn, -EINVAL);
  const std::int64_t deadline = t == nullptr ? dmt::kNoDeadline : deadline_in(turn, to_ns(*t));
  return finish_int(turn, poll_masked(turn, fds, n, deadline, mask));
}
int __ppoll_chk(struct pollfd* fds, nfds_t n, const struct timespec* t, const sigset_t* mask,
                size_t room) {
  fortify::check_room(n, room / sizeof *fds);
  return wrap::ppoll(fds, n, t, mask);
}

int select(int n, fd_set* r, fd_set* w, fd_set* e, struct timeval* t) {
  Turn turn(Op::select, Turn::kCancellationPoint);
  std::int64_t deadline = dmt::kNoDeadline;
  if (t != nullptr) {
    if (t->tv_sec < 0 || t->tv_usec < 0) return finish_int(turn, -EINVAL);
    const std::int64_t ns = saturating_add(to_ns({t->tv_sec, 0}), std::int64_t{t->tv_usec} * 1000);
    deadline = deadline_in(turn, ns);
  }
  const int result = select_masked(turn, n, r, w, e, deadline, nullptr);
  // As Linux: stores the remaining time.
  if (t != nullptr) *t = to_timeval(std::max<std::int64_t>(deadline - turn.now(), 0));
  return finish_int(turn, result);
}

int pselect(int n, fd_set* r, fd_set* w, fd_set* e, const struct timespec* t,
            const sigset_t* mask) {
  Turn turn(Op::pselect, Turn::kCancellationPoint);
  if (t != nullptr && !is_positive(*t)) return finish_int(turn, -EINVAL);
  const std::int64_t deadline = t == nullptr ? dmt::kNoDeadline : deadline_in(turn, to_ns(*t));
  return finish_int(turn, select_masked(turn, n, r, w, e, deadline, mask));
}

}  // namespace crane::wrap
