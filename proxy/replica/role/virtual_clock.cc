// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/virtual_clock.h"

#include <algorithm>

#include "dmt/base/assert.h"
#include "proxy/replica/role/tuning.h"

namespace crane::replica {
namespace {

constexpr std::int64_t kNotBefore = std::numeric_limits<std::int64_t>::max();

}  // namespace

void VirtualClock::committed(std::int64_t stamp_ns, std::int64_t mono_ns, bool fresh) noexcept {
  offset_ns_ = known_ ? std::max(offset_ns_, stamp_ns - mono_ns) : stamp_ns - mono_ns;
  known_ = true;
  fresh_ = fresh_ || fresh;
  last_ns_ = std::max(last_ns_, stamp_ns);
}

// Virtual time if nothing stops it.
std::int64_t VirtualClock::shown(std::int64_t mono_ns) const noexcept {
  const std::int64_t ran = std::max<std::int64_t>(0, mono_ns - from_mono_ns_);
  return std::max(last_ns_, std::min(real(mono_ns), from_ns_ + ran + ran / kSlewParts));  // CLOCK-4
}

std::int64_t VirtualClock::now(std::int64_t mono_ns) const noexcept {
  if (!leads_) return std::max(last_ns_, real(mono_ns));
  if (stopped_) return std::max(last_ns_, from_ns_);
  std::int64_t until_ns = awake_until_ns_;
  if (under_way_) until_ns = std::min(until_ns, progress_ns_ + kOutageNs);
  return shown(std::min(mono_ns, until_ns));  // CLOCK-3
}

std::int64_t VirtualClock::behind_ns(std::int64_t mono_ns) const noexcept {
  return std::max<std::int64_t>(0, real(mono_ns) - now(mono_ns));
}

std::int64_t VirtualClock::mono_at(std::int64_t virtual_ns) const noexcept {
  const std::int64_t at_ns = virtual_ns - offset_ns_;
  if (!leads_) return at_ns;
  if (stopped_) return kNotBefore;
  const std::int64_t run = std::max<std::int64_t>(0, virtual_ns - from_ns_);
  // Rounded up: before that time shown() is less.
  const std::int64_t slewed = run - run / (kSlewParts + 1);
  return std::max(at_ns, from_mono_ns_ + slewed);
}

// --- for a leader
// ---------------------------------------------------------------------------------

void VirtualClock::lead() noexcept {
  leads_ = true;
  under_way_ = waits_for_commit_ = false;
  awake_until_ns_ = kNotBefore;
  stopped_ = known_;  // the first leader of a group begins with its own clock
  from_mono_ns_ = from_ns_ = 0;
  if (stopped_) from_ns_ = last_ns_;  // CLOCK-2
  ++outages_;
}

void VirtualClock::follow() noexcept { leads_ = stopped_ = waits_for_commit_ = false; }

void VirtualClock::aim(std::int64_t virtual_ns, std::int64_t mono_ns) noexcept {
  const std::int64_t offset = virtual_ns - mono_ns;
  if (!known_ || (fresh_ && offset - offset_ns_ > kBehindMostNs)) return;
  offset_ns_ = std::max(offset_ns_, offset);
}

void VirtualClock::proposed(std::int64_t mono_ns) noexcept {
  if (!under_way_) progress_ns_ = mono_ns;
  under_way_ = true;
}

bool VirtualClock::lacks_commit(std::int64_t mono_ns) const noexcept {
  return under_way_ && mono_ns > progress_ns_ + kOutageNs;
}

void VirtualClock::stop(std::int64_t mono_ns) noexcept {
  ++outages_;
  if (stopped_) return;
  from_ns_ = shown(mono_ns);
  stopped_ = true;
}

void VirtualClock::progressed(std::int64_t mono_ns, bool more) noexcept {
  if (!leads_) return;
  if (!waits_for_commit_ && lacks_commit(mono_ns)) stop(progress_ns_ + kOutageNs);
  waits_for_commit_ = false;
  under_way_ = more;
  progress_ns_ = mono_ns;
}

void VirtualClock::runs(std::int64_t mono_ns, std::int64_t until_ns) noexcept {
  if (!leads_) return;
  if (!waits_for_commit_ && lacks_commit(mono_ns)) {
    stop(std::min(awake_until_ns_, progress_ns_ + kOutageNs));
    waits_for_commit_ = true;
  } else if (mono_ns > awake_until_ns_) {
    stop(awake_until_ns_);
  }
  const std::int64_t until = std::max(mono_ns, until_ns);
  awake_until_ns_ = until > kNotBefore - kOutageNs ? kNotBefore : until + kOutageNs;
}

void VirtualClock::resume(std::int64_t mono_ns) noexcept {
  CRANE_ASSERT(waits_for_inputs());
  from_ns_ = std::max(now(mono_ns), real(mono_ns) - kBehindMostNs);
  from_mono_ns_ = mono_ns;
  stopped_ = false;
  awake_until_ns_ = mono_ns + kOutageNs;
}

}  // namespace crane::replica
