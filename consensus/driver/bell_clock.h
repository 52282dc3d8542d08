// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a leader wakes its followers and sends them the commit index (core::Flush): a pure function
// of events and their times.
//
// A bell wakes followers whose processors are not needed to commit (shm, verbs): bells come at
// least `spacing_ns` apart, the first one after a pause at once.  Over tcp bytes need no bell; a
// separate write for the commit index costs a frame, its acknowledgement, and a wake-up at both
// ends.  The next entry carries the commit index anyway, so the clock waits `hold_ns` for one.
//
//   INVARIANT DRIVER-B1  With `hold_ns`, followers get a commit index, separately or in an entry,
//                   at most twice `hold_ns` after the owner looked.
//
// Threads: a plain value.

#include <cstdint>

#include "dmt/base/ids.h"

namespace crane::consensus {

class BellClock {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  BellClock(std::uint64_t spacing_ns, std::uint64_t hold_ns) noexcept
      : spacing_ns_(spacing_ns), hold_ns_(hold_ns) {}

  // Something was written, committed or handed to the application since the last bell.
  void moved() noexcept { moved_ = true; }

  // All followers know the commit index `known`; a leader would send them `committed`.
  void look(Index known, Index committed, std::uint64_t now_ns) noexcept {
    if (known >= committed) {
      since_ns_ = 0;
    } else if (since_ns_ == 0 || known >= awaited_) {  // followers got the last one
      since_ns_ = now_ns;
      awaited_ = committed;
    }
  }

  // When to flush if nothing else happens.  A follower waits for nothing.
  std::uint64_t due_ns(bool leads) const noexcept {
    if (leads && hold_ns_ > 0) return since_ns_ == 0 ? kNever : since_ns_ + hold_ns_;
    if (!moved_) return kNever;
    return leads ? next_ns_ : 0;
  }

  void rang(std::uint64_t now_ns) noexcept {
    moved_ = false;
    since_ns_ = 0;
    next_ns_ = now_ns + spacing_ns_;
  }

 private:
  std::uint64_t spacing_ns_;
  std::uint64_t hold_ns_;
  bool moved_ = false;
  std::uint64_t next_ns_ = 0;   // no bell before this time
  std::uint64_t since_ns_ = 0;  // when `awaited_` began to wait for an entry; 0: nothing waits
  Index awaited_{};
};

}  // namespace crane::consensus
