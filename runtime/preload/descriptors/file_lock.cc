// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/file_lock.h"

#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::file_lock {
namespace {

// Wait objects: the low half is the process that holds the lock, 0 = not known.
constexpr std::uint64_t kFileLocks = 1ull << 61;
constexpr std::int64_t kLookAgainNs = 20'000'000;

std::uint32_t own_pid() noexcept { return static_cast<std::uint32_t>(raw_syscall(SYS_getpid)); }

// Returns the process that holds a conflicting lock, or 0.
std::uint32_t holder_of(int fd, long x) noexcept {
  struct flock lock = *reinterpret_cast<const struct flock*>(x);
  if (raw_syscall(SYS_fcntl, fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid > 0 ? static_cast<std::uint32_t>(lock.l_pid) : 0;
}

// A thread also waits between two attempts: a thread that closes a circle then must get EDEADLK.
bool waits(const dmt::SlotRecord& s) noexcept {
  const bool looks_again =
      s.state == dmt::SlotState::kRunnable && s.wake_reason == dmt::WakeReason::kTimeout;
  return s.state == dmt::SlotState::kWaiting || looks_again;
}

// Returns the process that a thread of `pid` waits for, or 0.
std::uint32_t awaited_by(const dmt::Layout& w, std::uint32_t pid) noexcept {
  for (std::uint16_t i = 1; i < w.scheduler.slots_used; ++i) {
    const dmt::SlotRecord& s = w.slots[i];
    if (!waits(s) || w.processes[s.process].pid != pid) continue;
    if ((s.wait_object & ~0xffffffffull) != kFileLocks) continue;
    return static_cast<std::uint32_t>(s.wait_object);
  }
  return 0;
}

// As in Linux: considers processes, not threads, and only record locks.
bool would_deadlock(const dmt::Layout& w, std::uint32_t holder) noexcept {
  constexpr int kDeepest = 64;
  const std::uint32_t me = own_pid();
  for (int i = 0; holder != 0 && i < kDeepest; ++i) {
    if (holder == me) return true;
    holder = awaited_by(w, holder);
  }
  return false;
}

// `attempt` does not block. -EAGAIN, -EACCES or -EWOULDBLOCK: another process holds the lock.
template <typename Attempt, typename Holder>
int look_until_free(Turn& turn, Attempt attempt, Holder find_holder) noexcept {
  for (;;) {
    const auto result = static_cast<int>(attempt());
    if (result != -EAGAIN && result != -EACCES) return result;
    const std::uint32_t holder = find_holder();
    if (would_deadlock(turn.w, holder)) return -EDEADLK;
    const dmt::WakeReason why =
        turn.wait(kFileLocks | holder, deadline_after(turn.w, kLookAgainNs));
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kRestarts)) return -EINTR;
  }
}

template <typename Attempt, typename Holder>
int block_on(Turn& turn, Attempt attempt, Holder find_holder) noexcept {
  const int result = look_until_free(turn, attempt, find_holder);
  turn.w.slots[self.slot].wait_object = 0;  // it waits for no process now
  return result;
}

}  // namespace

void wake_lock_waiters(dmt::Layout& w) noexcept {
  if (w.scheduler.file_locks == 0) return;
  dmt::signal(w, kFileLocks | own_pid(), dmt::kAll);
  dmt::signal(w, kFileLocks, dmt::kAll);
}

int record(Turn& turn, int fd, int command, long x) noexcept {
  turn.w.scheduler.file_locks = 1;
  const int attempt = command == F_SETLKW       ? F_SETLK
                      : command == F_OFD_SETLKW ? F_OFD_SETLK
                                                : command;
  auto call = [=] { return raw_syscall(SYS_fcntl, fd, attempt, x); };
  auto holder = [=] { return command == F_SETLKW ? holder_of(fd, x) : 0; };
  const int result = command == attempt ? static_cast<int>(call()) : block_on(turn, call, holder);
  // Taking a lock may also release one: a write lock becomes a read lock.
  if (result >= 0) wake_lock_waiters(turn.w);
  return result;
}

int whole_file(Turn& turn, int fd, int how) noexcept {
  turn.w.scheduler.file_locks = 1;
  auto call = [=] { return raw_syscall(SYS_flock, fd, how | LOCK_NB); };
  const bool blocking = (how & (LOCK_NB | LOCK_UN)) == 0;
  const int result = blocking ? block_on(turn, call, [] { return 0u; }) : static_cast<int>(call());
  // Taking a lock may also release one: the kernel drops a lock before it converts it.
  if (result >= 0) wake_lock_waiters(turn.w);
  return result;
}

void end_of_process(dmt::Layout& w) noexcept {
  if (w.scheduler.file_locks == 0) return;
  const auto base = static_cast<unsigned>(own_descriptor_base());
  const auto end = static_cast<unsigned>(own_descriptor_end());
  raw_syscall(SYS_close_range, STDERR_FILENO + 1, base - 1, 0);
  raw_syscall(SYS_close_range, end, ~0u, 0);
  wake_lock_waiters(w);
}

}  // namespace crane::file_lock
