// SPDX-License-Identifier: Apache-2.0
#pragma once
// When to probe a link whose peer owes an answer: a pure function of what was sent and heard.
//
// TCP repairs a lost segment within a round trip when later segments arrive, and after its
// retransmission time-out, 200 ms at least, when none does.  A group's traffic is thin: a write or
// a question is often the last segment for a while, so that the loss of one stalls a link for 200
// ms.  A small probe, sent when an answer is later than usual, is such a later segment; the peer
// answers it, and the answer does the same for what the peer sent.  Probes back off, so a slow or
// stopped peer costs a few dozen small frames.
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

  // The peer answers what was sent as `sequence`; the next look_at() begins to wait for it.
  void sent(std::uint64_t sequence) noexcept {
    sent_ = sequence;
    if (due_ns_ == kNever) unstamped_ = true;
  }

  // Everything up to `sequence` is answered.
  void answered(std::uint64_t sequence, std::uint64_t now_ns) noexcept {
    heard_ = std::max(heard_, sequence);
    if (timed_ != 0 && heard_ >= timed_) {
      if (now_ns > timed_at_ns_) note(now_ns - timed_at_ns_);
      timed_ = 0;
    }
    power_ = 0;
    due_ns_ = heard_ >= sent_ ? kNever : now_ns + pause_ns();
    unstamped_ = unstamped_ && heard_ < sent_;
  }

  // Called with the time before every sleep: what was sent since the last call was sent now.
  void look_at(std::uint64_t now_ns) noexcept {
    if (!unstamped_) return;
    unstamped_ = false;
    due_ns_ = now_ns + pause_ns();
    timed_ = sent_;
    timed_at_ns_ = now_ns;
  }

  std::uint64_t due_ns() const noexcept { return due_ns_; }

  // A probe leaves now, as `sequence`.
  void probed(std::uint64_t sequence, std::uint64_t now_ns) noexcept {
    sent_ = sequence;
    power_ = std::min(power_ + 1, kPowerMax);
    due_ns_ = now_ns + std::min(pause_ns() << power_, std::max(pause_ns(), kPauseMaxNs));
  }

  // The link is another one.
  void forget() noexcept { *this = AnswerClock{}; }

  std::uint64_t pause_ns() const noexcept {
    return std::clamp(2 * usual_ns_, kPauseMinNs, kPauseMaxNs);
  }

 private:
  // Follows the quicker answers: those that waited for a repair say little about the next one.
  void note(std::uint64_t took_ns) noexcept {
    if (took_ns < usual_ns_) {
      usual_ns_ -= (usual_ns_ - took_ns) / 4;
    } else {
      usual_ns_ += (took_ns - usual_ns_) / 16;
    }
  }

  std::uint64_t sent_ = 0;
  std::uint64_t heard_ = 0;
  std::uint64_t due_ns_ = kNever;
  std::uint64_t timed_ = 0;  // the sequence whose answer is timed; 0: none
  std::uint64_t timed_at_ns_ = 0;
  std::uint64_t usual_ns_ = 0;
  unsigned power_ = 0;
  bool unstamped_ = false;
};

}  // namespace crane::consensus
