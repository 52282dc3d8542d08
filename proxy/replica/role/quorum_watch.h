// SPDX-License-Identifier: Apache-2.0
#pragma once
// When the group cannot serve clients: a pure function of the state of consensus.
//
// A replica that is connected to no majority cannot lead, and knows no leader.  On several hosts
// its clients must then go elsewhere at once rather than wait.  A majority without a leader elects
// one within milliseconds; clients wait for that in the kernel, but not forever.
//
// Threads: a plain value.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "consensus/consensus.h"

namespace crane::replica {

class QuorumWatch {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kNoLeaderNs = 3'000'000'000;
  static constexpr std::int64_t kStartNs = 10'000'000'000;  // the others may be started later
  enum class Change : std::uint8_t { kNone, kLost, kBack };

  Change step(const consensus::QuorumStatus& s, std::int64_t now_ns) {
    const bool majority = s.voters == 0 || s.answering * 2 > s.voters;
    if (began_ns_ == 0) began_ns_ = now_ns;
    last_ = s;
    if (majority && s.led) {
      led_ns_ = now_ns;
      if (!lost_) return Change::kNone;
      lost_ = false;
      return Change::kBack;
    }
    if (lost_ || (now_ns < due_ns() && (majority || led_ns_ == 0))) return Change::kNone;
    lost_ = true;
    return Change::kLost;
  }

  // When to look again if nothing happens.
  std::int64_t due_ns() const noexcept {
    if (lost_ || began_ns_ == 0) return kNever;
    return led_ns_ == 0 ? began_ns_ + kStartNs : led_ns_ + kNoLeaderNs;
  }

  // Clients are not served.
  bool lost() const noexcept { return lost_; }
  // A majority answers, even if it has no leader.
  bool majority() const noexcept { return last_.answering * 2 > last_.voters; }
  // The sentence for an operator.  It ends with `clients`, the caller's text on what happens to
  // them.  Empty while clients are served.
  std::string text(std::string_view clients) const {
    if (!lost_) return "";
    return std::string(majority() ? "no leader: " : "no quorum: ") +
           std::to_string(last_.answering) + " of " + std::to_string(last_.voters) +
           " replicas answer; " + std::string(clients);
  }

 private:
  consensus::QuorumStatus last_;
  std::int64_t began_ns_ = 0;
  std::int64_t led_ns_ = 0;  // the last time when there was a majority with a leader
  bool lost_ = false;
};

}  // namespace crane::replica
