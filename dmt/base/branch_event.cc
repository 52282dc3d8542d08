// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/branch_event.h"

#include <cpuid.h>
#include <linux/perf_event.h>

#include <cstring>

#include "dmt/base/raw.h"

namespace crane {
namespace {

// BR_INST_RETIRED.CONDITIONAL from Sandy Bridge on; ex_ret_cond of Zen.
constexpr std::uint32_t kIntel = 0x5101c4, kZen = 0x5100d1;
// rr's margins.
constexpr std::uint32_t kIntelMargin = 100, kZenMargin = 10'000, kSimulatedMargin = 200;

struct Processor {
  char vendor[13] = {};
  unsigned family = 0, model = 0;
};

Processor processor() noexcept {
  Processor p;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return p;
  std::memcpy(p.vendor, &b, 4);
  std::memcpy(p.vendor + 4, &d, 4);
  std::memcpy(p.vendor + 8, &c, 4);
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return p;
  p.family = ((a >> 8) & 0xf) + ((a >> 20) & 0xff);
  p.model = ((a >> 4) & 0xf) | ((a >> 12) & 0xf0);
  return p;
}

}  // namespace

BranchEvent branch_event() noexcept {
  constexpr unsigned kBigCores = 6, kSandyBridge = 0x2a, kFirstZen = 0x17;
  const Processor p = processor();
  const bool is_intel = std::strcmp(p.vendor, "GenuineIntel") == 0;
  const bool is_amd = std::strcmp(p.vendor, "AuthenticAMD") == 0;
  std::uint32_t code = 0;
  if (is_intel && p.family == kBigCores && p.model >= kSandyBridge) code = kIntel;
  if (is_amd && p.family >= kFirstZen) code = kZen;
  return {code, margin_of(code)};
}

std::uint32_t margin_of(std::uint32_t code) noexcept {
  switch (code) {
    case kIntel:
      return kIntelMargin;
    case kZen:
      return kZenMargin;
    case kSimulatedEvent:
      return kSimulatedMargin;
    default:
      return 0;
  }
}

long open_branch_counter(std::uint32_t code, std::uint64_t period) noexcept {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_RAW;
  wanted.config = code;
  wanted.sample_period = period;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.exclude_guest = 0;
  wanted.pinned = 1;
  wanted.wakeup_events = 1;
  return raw_syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

}  // namespace crane
