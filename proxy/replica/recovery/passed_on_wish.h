// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request for a checkpoint of this replica that its operator made here, and that this follower
// passed on to its leader (CheckpointWish).  The message may be lost, the leader may be lost before
// it has requested the checkpoint by an entry, and a follower knows the next leader before that one
// may propose.  So the request is repeated until an entry or a refusal answers it; if this replica
// leads next, it is refused, because a leader that has followers takes no checkpoint (ASK-1).
//
//   none --passed_on--> waits --granted, refused, kWishNs passed--> none
//                       waits --kRepeatNs passed, another view, with a leader--> waits (repeat)
//                       waits --this replica leads--> none (refuse)
//
// INVARIANT WISH-1  While an operator waits for a checkpoint of this follower, its leader has the
//                  request, or gets it again; one that refuses it says why.
//
// Threads: one thread.

#include <cstdint>
#include <optional>

#include "dmt/base/ids.h"
#include "proxy/replica/deadline.h"

namespace crane::replica {

class PassedOnWish {
 public:
  // The time that crane-ctl waits for a leader's answer.
  static constexpr std::int64_t kWishNs = 90'000'000'000;
  static constexpr std::int64_t kRepeatNs = 500'000'000;
  enum class Next { kNothing, kRepeat, kRefuse };

  void passed_on(Index after, View view, std::int64_t now_ns) {
    wish_ = Wish{after, view, now_ns + kRepeatNs, now_ns + kWishNs};
  }
  // The entry `at` requests a checkpoint of this replica; an earlier request does not count.
  void granted(Index at) noexcept {
    if (wish_ && at > wish_->after) wish_.reset();
  }
  // A leader refuses the wish of that place.  True: the operator still waits for it.
  bool refused(Index after) noexcept {
    const bool waits = wish_ && wish_->after == after;
    if (waits) wish_.reset();
    return waits;
  }
  // `led`: this replica knows the leader of `view`, perhaps itself (`leads`).
  Next step(View view, bool led, bool leads, std::int64_t now_ns) {
    if (!wish_) return Next::kNothing;
    if (now_ns >= wish_->until_ns) wish_.reset();
    if (!wish_ || (view == wish_->view && now_ns < wish_->again_ns)) return Next::kNothing;
    wish_->again_ns = now_ns + kRepeatNs;
    if (!led) return Next::kNothing;
    wish_->view = view;
    after_ = wish_->after;
    if (!leads) return Next::kRepeat;
    wish_.reset();
    return Next::kRefuse;
  }
  std::int64_t due_ns() const noexcept { return wish_ ? wish_->again_ns : kNever; }
  // The last entry that was committed when the operator made the request; after step().
  Index after() const noexcept { return after_; }

 private:
  struct Wish {
    Index after{};
    View view{};  // of the leader to which the request was sent last
    std::int64_t again_ns = 0;
    std::int64_t until_ns = 0;
  };
  std::optional<Wish> wish_;
  Index after_{};
};

}  // namespace crane::replica
