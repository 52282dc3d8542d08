// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides when to probe a link whose peer owes an answer, from what was sent and received.
//
// TCP repairs a lost segment within a round trip if later segments arrive; if none does, only after
// its retransmission time-out of at least 200 ms.  A group's traffic is thin: a write or a request
// is often the last segment for a while, so its loss stalls the link for 200 ms.  When an answer is
// later than usual, a small probe provides the later segment.  The peer's reply does the same for
// the other direction.  Probes back off, so a slow or stopped peer costs a few dozen small frames.
//
// Threads: a plain value.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace crane::consensus {

class AnswerClock {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kPauseMinNs = 2'000'000;
  static constexpr std::uint64_t kPauseMaxNs = 100'000'000;
  static constexpr unsigned kPowerMax = 5;

  // Something that the peer answers was sent as `sequence`; the next look_at() starts the wait.
  void sent(std::uint64_t sequence) noexcept {
    sent_ = sequence;
    if (due_ns_ == kNever) unstamped_ = true;
  }

  // Everything up to `sequence` is answered.
  void answered(std::uint64_t sequence, std::uint64_t now_ns) noexcept {
    answered_ = std::max(answered_, sequence);
    if (timed_ != 0 && answered_ >= timed_) {
      if (now_ns > timed_at_ns_) note(now_ns - timed_at_ns_);
      timed_ = 0;
    }
    power_ = 0;
    due_ns_ = answered_ >= sent_ ? kNever : now_ns + pause_ns();
    unstamped_ = unstamped_ && answered_ < sent_;
  }

  // Call it before every sleep.  Whatever was sent since the last call counts as sent at `now_ns`.
  void look_at(std::uint64_t now_ns) noexcept {
    if (!unstamped_) return;
    unstamped_ = false;
    due_ns_ = now_ns + pause_ns();
    timed_ = sent_;
    timed_at_ns_ = now_ns;
  }

  std::uint64_t due_ns() const noexcept { return due_ns_; }

  // A probe is sent now, as `sequence`.
  void probed(std::uint64_t sequence, std::uint64_t now_ns) noexcept {
    sent_ = sequence;
    power_ = std::min(power_ + 1, kPowerMax);
    due_ns_ = now_ns + std::min(pause_ns() << power_, std::max(pause_ns(), kPauseMaxNs));
  }

  // The link was replaced.
  void forget() noexcept { *this = AnswerClock{}; }

  std::uint64_t pause_ns() const noexcept {
    return std::clamp(2 * usual_ns_, kPauseMinNs, kPauseMaxNs);
  }

 private:
  // Follows the quicker answers: an answer that waited for a repair does not predict the next one.
  void note(std::uint64_t took_ns) noexcept {
    if (took_ns < usual_ns_) {
      usual_ns_ -= (usual_ns_ - took_ns) / 4;
    } else {
      usual_ns_ += (took_ns - usual_ns_) / 16;
    }
  }

  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t due_ns_ = kNever;
  std::uint64_t timed_ = 0;  // sequence whose answer is being timed; 0: none
  std::uint64_t timed_at_ns_ = 0;
  std::uint64_t usual_ns_ = 0;
  unsigned power_ = 0;
  bool unstamped_ = false;
};

}  // namespace crane::consensus
