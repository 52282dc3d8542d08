// SPDX-License-Identifier: Apache-2.0
// fsync and similar calls. Natively the other threads run while one thread waits for the disk.
#include <sys/mman.h>

#include <atomic>

#include "dmt/base/futex.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/flushing.h"
#include "runtime/preload/ground/wrappers.h"

namespace crane {
namespace {

constexpr int kFlushesMax = 64;
constexpr int kNoDescriptor = -1;

// One more than the descriptor that a thread flushes; 0 = free. Set with the turn, cleared without.
// A thread that closes the descriptor sleeps on it.
constinit std::atomic<std::uint32_t> flushed[kFlushesMax] = {};
// Set by the first mark of this process: most programs never flush.
constinit std::atomic<bool> has_flushed{false};

std::atomic<std::uint32_t>* mark(int fd) noexcept {
  has_flushed.store(true, std::memory_order_relaxed);
  for (auto& one : flushed) {
    if (one.load(std::memory_order_relaxed) != 0) continue;
    one.store(static_cast<std::uint32_t>(fd) + 1, std::memory_order_release);
    return &one;
  }
  return nullptr;
}

void clear(std::atomic<std::uint32_t>& one) noexcept {
  one.store(0, std::memory_order_release);
  futex_wake(&one, 1);
}

// Makes `call` without the turn (FLUSH-1). When the table is full, the call is made at the turn,
// which only takes longer. A descriptor below 0 needs no mark, because no thread can close it.
template <typename Call>
int flush(Op op, int fd, Call call) noexcept {
  Turn turn(op, Turn::kCancellationPoint);
  std::atomic<std::uint32_t>* marked = fd >= 0 ? mark(fd) : nullptr;
  const bool at_turn = fd >= 0 && marked == nullptr;
  long result = at_turn ? call() : 0;
  // A profile may select these calls for agreed detachment (DESIGN D3b, rule 4); then no thread
  // waits.
  if ((without_turn().header.configuration.detached_calls & dmt::kDetachSync) != 0) {
    turn.detach();
  } else {
    turn.yield_without_turn();
  }
  if (!at_turn) result = call();
  if (marked != nullptr) clear(*marked);
  turn.take();
  return finish_int(turn, result);
}

}  // namespace

void await_flushes(int first, int last) noexcept {
  if (!has_flushed.load(std::memory_order_relaxed)) return;
  for (auto& one : flushed) {
    for (;;) {
      const std::uint32_t value = one.load(std::memory_order_acquire);
      const auto fd = static_cast<int>(value - 1);
      if (value == 0 || fd < first || fd > last) break;
      futex_wait(&one, value);
    }
  }
}

void forget_flushes() noexcept {
  if (!has_flushed.load(std::memory_order_relaxed)) return;
  for (auto& one : flushed) one.store(0, std::memory_order_relaxed);
}

namespace wrap {

int fsync(int fd) {
  return flush(Op::fsync, fd, [=] { return raw_syscall(SYS_fsync, fd); });
}
int fdatasync(int fd) {
  return flush(Op::fdatasync, fd, [=] { return raw_syscall(SYS_fdatasync, fd); });
}
int syncfs(int fd) {
  return flush(Op::syncfs, fd, [=] { return raw_syscall(SYS_syncfs, fd); });
}
void sync() {
  flush(Op::sync, kNoDescriptor, [] { return raw_syscall(SYS_sync); });
}
int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags) {
  return flush(Op::sync_file_range, fd,
               [=] { return raw_syscall(SYS_sync_file_range, fd, at, n, flags); });
}
int msync(void* a, size_t n, int flags) {
  return flush(Op::msync, kNoDescriptor, [=] { return raw_syscall(SYS_msync, a, n, flags); });
}

}  // namespace wrap
}  // namespace crane
