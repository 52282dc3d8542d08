// SPDX-License-Identifier: Apache-2.0
// Resource limits. The kernel enforces them, with two exceptions: Crane's mappings do not count for
// the server (RLIMIT_AS), and processor time is the schedule's (RLIMIT_CPU).
#include <sys/resource.h>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/turn/turn.h"

namespace crane::wrap {
namespace {

static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64));

// The segment, and signal stacks and tables of ours, with a margin.
constexpr rlim_t kOwnBytes = sizeof(dmt::Layout) + (32u << 20);
constexpr std::int64_t kSecondNs = 1'000'000'000;

bool is_valid(const struct rlimit& l) noexcept { return l.rlim_cur <= l.rlim_max; }

// RLIM_INFINITY is all ones; limits are stored plus one, so it is stored as 0.
rlim_t limit_of(std::uint64_t kept) noexcept { return kept - 1; }
std::int64_t ns_of(rlim_t seconds) noexcept {
  constexpr rlim_t kMost = INT64_MAX / kSecondNs;
  return seconds >= kMost ? 0 : static_cast<std::int64_t>(seconds == 0 ? 1 : seconds) * kSecondNs;
}

// Returns an error number.
int processor_time(dmt::Layout& w, std::uint16_t process, const struct rlimit* wanted,
                   struct rlimit* old) noexcept {
  dmt::ProcessRecord& p = w.processes[process];
  if (old != nullptr) *old = {limit_of(p.cpu_limits[0]), limit_of(p.cpu_limits[1])};
  if (wanted == nullptr) return 0;
  if (!is_valid(*wanted)) return EINVAL;
  const bool raises = wanted->rlim_max > limit_of(p.cpu_limits[1]);
  if (raises && raw_syscall(SYS_geteuid) != 0) return EPERM;
  p.cpu_limits[0] = wanted->rlim_cur + 1;
  p.cpu_limits[1] = wanted->rlim_max + 1;
  p.cpu_warning_ns = ns_of(wanted->rlim_cur);
  p.cpu_end_ns = ns_of(wanted->rlim_max);
  return 0;
}

rlim_t with_own(rlim_t bytes) noexcept {
  return bytes > RLIM_INFINITY - kOwnBytes ? RLIM_INFINITY : bytes + kOwnBytes;
}
rlim_t without_own(rlim_t bytes) noexcept {
  return bytes == RLIM_INFINITY || bytes < kOwnBytes ? bytes : bytes - kOwnBytes;
}

// Returns the kernel's result: 0 or a negative error number.
long address_space(pid_t p, const struct rlimit* wanted, struct rlimit* old) noexcept {
  struct rlimit given {};
  if (wanted != nullptr) {
    if (!is_valid(*wanted)) return -EINVAL;
    given = {with_own(wanted->rlim_cur), with_own(wanted->rlim_max)};
  }
  const long result =
      raw_syscall(SYS_prlimit64, p, RLIMIT_AS, wanted == nullptr ? nullptr : &given, old);
  if (result == 0 && old != nullptr) {
    *old = {without_own(old->rlim_cur), without_own(old->rlim_max)};
  }
  return result;
}

int limit(pid_t p, int resource, const struct rlimit* wanted, struct rlimit* old) noexcept {
  Turn turn(Op::prlimit);
  long result = 0;
  if (resource == RLIMIT_CPU) {
    const std::uint16_t process =
        p == 0 ? self.process : dmt::find_process(turn.w, static_cast<std::uint32_t>(p));
    const bool permitted = process == self.process || process == dmt::kNoProcess ||
                           may_signal(static_cast<std::uint32_t>(p), 0);
    result = process == dmt::kNoProcess ? -ESRCH
             : !permitted               ? -EPERM
                                        : -processor_time(turn.w, process, wanted, old);
  } else if (resource == RLIMIT_AS) {
    result = address_space(p, wanted, old);
  } else {
    result = raw_syscall(SYS_prlimit64, p, resource, wanted, old);
  }
  turn.result(static_cast<std::int64_t>(result));
  return result < 0 ? fail(static_cast<int>(-result)) : 0;
}

}  // namespace

int getrlimit(__rlimit_resource_t r, struct rlimit* l) {
  return limit(0, static_cast<int>(r), nullptr, l);
}
int getrlimit64(__rlimit_resource_t r, struct rlimit64* l) {
  return limit(0, static_cast<int>(r), nullptr, reinterpret_cast<struct rlimit*>(l));
}
int setrlimit(__rlimit_resource_t r, const struct rlimit* l) {
  return limit(0, static_cast<int>(r), l, nullptr);
}
int setrlimit64(__rlimit_resource_t r, const struct rlimit64* l) {
  return limit(0, static_cast<int>(r), reinterpret_cast<const struct rlimit*>(l), nullptr);
}
int prlimit(pid_t p, enum __rlimit_resource r, const struct rlimit* l, struct rlimit* old) {
  return limit(p, static_cast<int>(r), l, old);
}
int prlimit64(pid_t p, enum __rlimit_resource r, const struct rlimit64* l, struct rlimit64* old) {
  return limit(p, static_cast<int>(r), reinterpret_cast<const struct rlimit*>(l),
               reinterpret_cast<struct rlimit*>(old));
}

}  // namespace crane::wrap
