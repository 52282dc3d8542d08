// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's time stamps: virtual monotonic time that goes on through changes of the leader.
//
// Virtual time = the own CLOCK_MONOTONIC + an offset, which every replica learns from the stamps it
// sees committed: a new leader goes on where the old one would be now (DESIGN D17, rule 8).  The
// largest offset seen is the one that arrived with the least delay.
//
// Threads: one object, one thread.
// INVARIANT CLOCK-1  next_stamp() never goes back, nor behind a committed stamp.

#include <algorithm>
#include <cstdint>

namespace crane::proxy {

class VirtualClock {
 public:
  // A committed entry carried `stamp_ns`; it came in at `mono_ns`.
  void committed(std::int64_t stamp_ns, std::int64_t mono_ns) noexcept {
    offset_ns_ = known_ ? std::max(offset_ns_, stamp_ns - mono_ns) : stamp_ns - mono_ns;
    known_ = true;
    last_ns_ = std::max(last_ns_, stamp_ns);
  }

  // Virtual time at `mono_ns`.  Before the first stamp of the group: the own clock.
  std::int64_t now(std::int64_t mono_ns) const noexcept {
    return std::max(last_ns_, mono_ns + offset_ns_);
  }

  // The stamp of the next proposal.
  std::int64_t next_stamp(std::int64_t mono_ns) noexcept {
    last_ns_ = now(mono_ns);  // CLOCK-1
    return last_ns_;
  }

  // When the own clock will show that virtual time `virtual_ns` has come.
  std::int64_t mono_at(std::int64_t virtual_ns) const noexcept { return virtual_ns - offset_ns_; }

 private:
  bool known_ = false;
  std::int64_t offset_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace crane::proxy
