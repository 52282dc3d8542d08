// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/room.h"

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr long kLookNs = 50'000'000;
// The most that the kernel writes in one call (MAX_RW_COUNT).
constexpr std::size_t kAtOnceMax = 0x7ffff000;

bool waits_for_room() noexcept {
  return without_turn().header.configuration.waits_for_room != 0 && self.slot != dmt::kNone;
}

bool is_on_disk(int fd) noexcept {
  struct stat info {};
  struct statfs system {};
  return raw_syscall(SYS_fstat, fd, &info) == 0 && S_ISREG(info.st_mode) &&
         raw_syscall(SYS_fstatfs, fd, &system) == 0 && system.f_type != TMPFS_MAGIC;
}

// Writing the rest of a shortened write beyond the limit would raise SIGXFSZ, which the first write
// did not.
bool has_limit() noexcept {
  struct rlimit limit {};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
         limit.rlim_cur != RLIM_INFINITY;
}

std::size_t bytes_of(const Written& w) noexcept {
  std::size_t sum = 0;
  for (int i = 0; i < w.count; ++i) sum += w.v[i].iov_len;
  return std::min(sum, kAtOnceMax);
}

// The part of the first incomplete buffer after `done` bytes.
struct iovec piece_at(const Written& w, std::size_t done) noexcept {
  for (int i = 0; i < w.count; ++i) {
    const std::size_t size = w.v[i].iov_len;
    if (done < size) return {static_cast<char*>(w.v[i].iov_base) + done, size - done};
    done -= size;
  }
  return {nullptr, 0};
}

}  // namespace

RoomWait::~RoomWait() {
  if (!waits_) return;
  without_turn().scheduler.wait_for_room.fetch_sub(1, std::memory_order_relaxed);
  without_turn().slots[self.slot].in_operation.store(in_operation_, std::memory_order_relaxed);
  Message() << "process " << without_turn().processes[self.process].pid
            << ": there is room again: it continues";
}

bool RoomWait::again(int error, int fd) noexcept {
  if (error != ENOSPC && error != EDQUOT) return false;
  if (!waits_) {
    if (!waits_for_room() || (fd >= 0 && !is_on_disk(fd))) return false;
    waits_ = true;
    without_turn().scheduler.wait_for_room.fetch_add(1, std::memory_order_relaxed);
    // Counts as inside Crane: preempting a thread that waits for room gains nothing (stall.h).
    in_operation_ =
        without_turn().slots[self.slot].in_operation.exchange(1, std::memory_order_relaxed);
    Message() << "process " << without_turn().processes[self.process].pid
              << " waits: the file system that it writes to has no room";
  }
  const timespec duration{0, kLookNs};
  (void)raw_syscall(SYS_nanosleep, &duration, nullptr);
  return true;
}

ssize_t write_rest(const Written& w, ssize_t done) noexcept {
  const std::size_t wanted = bytes_of(w);
  auto written = static_cast<std::size_t>(done);
  if (written >= wanted || !waits_for_room() || !is_on_disk(w.fd) || has_limit()) return done;
  while (written < wanted) {
    const struct iovec rest = piece_at(w, written);
    const off64_t at = w.at < 0 ? -1 : w.at + static_cast<off64_t>(written);
    const long put = with_room_raw(
        [&] { return raw_syscall(SYS_pwritev2, w.fd, &rest, 1, at, 0, w.flags); }, w.fd);
    if (put <= 0) break;
    written += static_cast<std::size_t>(put);
  }
  return static_cast<ssize_t>(written);
}

}  // namespace crane
