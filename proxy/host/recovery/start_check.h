// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides whether this replica can continue with a leader's entries: the leader's START contains
// what must be equal (agreed.h).
//
// A build of Crane with another version of the schedule takes over at one entry of the log.  After
// that entry a server of any build may begin (server_restart.h).  There the old build may still
// elect leaders that have not come to that entry.  Their STARTs differ, and no entry of a client
// follows them.  So a difference of the schedule counts only from the first entry of a client in
// that reign.
//
// Threads: the node's one thread.  Pure.
// INVARIANT HANDOVER-2  No server runs an entry of a client in the reign of a leader whose START
//                       has another version of the schedule.

#include "consensus/consensus.h"
#include "dmt/sequence/entry.h"
#include "proxy/host/agreed.h"

namespace crane::node {

class StartCheck {
 public:
  // `agreed` must outlive it.
  explicit StartCheck(const Agreed& agreed) : agreed_(agreed) {}

  // The replica begins after an entry at which the group was handed over.
  void begin_behind_hand_over() noexcept { open_ = true; }

  // Call before the server gets the entry.  Returns the item that differs; nullptr: it may get it.
  const char* look(const consensus::EntryView& entry) noexcept {
    const auto type = static_cast<EntryType>(entry.type);
    if (type != EntryType::kStart) {
      return origin_of(type) == EntryOrigin::kClient ? differs_ : nullptr;  // HANDOVER-2
    }
    differs_ = first_difference(agreed_, entry.payload);
    if (differs_ == nullptr) {
      open_ = false;
    } else if (!open_ || !only_schedule_differs(agreed_, entry.payload)) {
      return differs_;
    }
    return nullptr;
  }

 private:
  const Agreed& agreed_;
  bool open_ = false;              // no leader of this build since the hand-over
  const char* differs_ = nullptr;  // the difference of the last START
};

}  // namespace crane::node
