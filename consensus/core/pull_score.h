// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failure detection by pull-score (Mu 5.1): a pure function of what was read.
//
// The reader looks at the leader's heartbeat counter.  A counter that moved earns points; one that
// stalled too long costs points.  Below kScoreLow the leader is suspected, from kScoreHigh on it is
// trusted again.
//
// Unlike in Mu, the cost of a miss follows the noise: the recent streaks of misses that turned out
// to be false alarms (DESIGN C6).  A loaded machine therefore needs more misses in a row than an
// idle one.  A reader that gets its own processor late counts that as noise, too, even before its
// first false alarm: on a crowded machine the leader is delayed as well.
//
// A read without an answer within twice the recent answer time is a different kind of miss: the
// network lost a packet, or has become slow.  If the answer comes after all, it shows how long this
// network may be silent, and twice the longest silence is allowed.  A longer silence is remembered
// longer, because loss on a network comes in bursts.  On a network that answers in time nothing
// changes.
//
// INVARIANT CORE-E1  0 <= score <= kScoreMax.
// INVARIANT CORE-E2  alive changes only when the score reaches kScoreLow or kScoreHigh.
// INVARIANT CORE-E3  one miss never makes a leader of full score suspected, even a stopped one.
//
// Threads: a plain value.

#include <algorithm>
#include <cstdint>

#include "consensus/core/tuning.h"
#include "dmt/base/assert.h"

namespace crane::consensus::core {

class PullScore {
 public:
  // A new leader starts trusted; the measured noise stays.
  void reset() noexcept {
    score_ = kScoreMax;
    streak_ = 0;
    silent_ = 0;
    alive_ = true;
  }

  void hit() noexcept {
    if (streak_ > 0) {
      noise_sixteenths_ = std::max(noise_sixteenths_, std::min(streak_, kNoiseMax) * 16);
    } else {
      noise_sixteenths_ -= (noise_sixteenths_ + 63) / 64;
    }
    if (silent_ > 0) {
      silence_sixteenths_ = std::max(silence_sixteenths_, std::min(silent_, kSilenceMax) * 16);
    } else if (silence_sixteenths_ > 0) {
      --silence_sixteenths_;
    }
    streak_ = 0;
    silent_ = 0;
    move(kHitPoints);
  }

  void miss() noexcept {
    streak_ = std::min(streak_ + 1, 1 << 20);
    move(-cost());
  }

  // A miss of a leader that was observed to be stopped: noise cannot explain it.
  void stopped() noexcept {
    streak_ = std::min(streak_ + 1, 1 << 20);
    move(-std::max(cost(), kStoppedPoints));
  }

  // The leader answered in another way: it is trusted again, and the silence was the network's.
  void answered_after_all() noexcept {
    hit();
    reset();
  }

  // A read was answered after `took_ns`.
  void answered(std::uint64_t took_ns) noexcept {
    took_ns_ = !knows_answers_ || took_ns > took_ns_
                   ? took_ns
                   : took_ns_ - (took_ns_ - took_ns) / kTookMemory;
    knows_answers_ = true;
  }
  // Whether a read that waits for `out_ns` is later than answers usually are.
  bool is_late(std::uint64_t out_ns) const noexcept {
    return out_ns > (knows_answers_ ? 2 * took_ns_ : kFirstAnswerNs);
  }

  // The read has no answer yet.
  void unanswered() noexcept {
    silent_ = std::min(silent_ + 1, 1 << 20);
    miss();
  }

  void reader_late(std::uint64_t periods) noexcept {
    const int noise = static_cast<int>(std::min<std::uint64_t>(periods, kLatenessMax));
    noise_sixteenths_ = std::max(noise_sixteenths_, noise * 16);
  }

  bool alive() const noexcept { return alive_; }
  int score() const noexcept { return score_; }
  int streak() const noexcept { return streak_; }
  // Misses in a row from full score to suspicion.
  int misses_needed() const noexcept { return (kScoreMax - kScoreLow + cost() - 1) / cost(); }
  int noise() const noexcept { return noise_sixteenths_ / 16; }
  int silence() const noexcept { return silence_sixteenths_ / 16; }

 private:
  int cost() const noexcept {
    const int noise = std::max(noise_sixteenths_ / 16, 2 * (silence_sixteenths_ / 16));
    return std::max(1, kScoreMax / (kMissesBase + noise));
  }
  void move(int points) noexcept {
    score_ = std::clamp(score_ + points, 0, kScoreMax);
    CRANE_ASSERT(score_ >= 0 && score_ <= kScoreMax);  // CORE-E1
    if (score_ <= kScoreLow) alive_ = false;
    if (score_ >= kScoreHigh) alive_ = true;
  }

  int score_ = kScoreMax;
  int streak_ = 0;
  int silent_ = 0;             // reads of the streak without an answer
  std::uint64_t took_ns_ = 0;  // the longest recent answer time
  bool knows_answers_ = false;
  int noise_sixteenths_ = 0;
  int silence_sixteenths_ = 0;
  bool alive_ = true;
};

}  // namespace crane::consensus::core
