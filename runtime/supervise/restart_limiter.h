// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans the next start of a lost replica.  There always is one: at once the first time, and after
// 1, 2, 4, .. 60 s if the attempts before did not last.
//
// Threads: plain values.
// INVARIANT RETURN-1  A replica that was lost always has a next attempt.
// INVARIANT RETURN-2  The next attempt is at most kPauseMostMs away.

#include <algorithm>
#include <cstdint>

namespace crane::supervise {

class RestartLimiter {
 public:
  enum class End : std::uint8_t {
    kKilled,  // from outside, or with its server
    kFailed,  // its node reported why it cannot continue
    kAsked,   // it ended to restart at a newer checkpoint: not a failed attempt
  };
  static constexpr std::int64_t kPauseMostMs = 60'000;
  static constexpr std::int64_t kLastsMs = 10'000;

  // `unit_ms`: the first pause that is not 0; tests shorten it.
  explicit RestartLimiter(std::int64_t unit_ms = 1'000) : unit_ms_(unit_ms) {}

  // Plans the next attempt after a delay of at least `least_ms`.
  void ended(End how, std::int64_t now_ms, std::int64_t least_ms = 0) {
    if (began_ms_ != 0 && now_ms - began_ms_ > kLastsMs) forget();
    if (how != End::kAsked) ++in_a_row_;
    failed_ = how == End::kFailed ? failed_ + 1 : how == End::kKilled ? 0 : failed_;
    due_ms_ = now_ms + std::max(least_ms, how == End::kAsked ? 0 : pause_ms());
    planned_ = true;
  }
  void begins(std::int64_t now_ms) {
    began_ms_ = now_ms;
    planned_ = false;
  }
  // Makes the planned attempt due now, at an operator's request.
  void hurry(std::int64_t now_ms) {
    in_a_row_ = failed_ = 0;
    due_ms_ = now_ms;
  }
  // Cancels the plan: an operator decides, or the replica is no longer a member.
  void forget() {
    in_a_row_ = failed_ = 0;
    planned_ = false;
  }

  bool planned() const { return planned_; }
  bool due(std::int64_t now_ms) const { return planned_ && now_ms >= due_ms_; }
  std::int64_t due_ms() const { return due_ms_; }
  // The number of ends since an attempt lasted.
  int in_a_row() const { return in_a_row_; }
  // The number of ends of kind kFailed in a row.
  int failed() const { return failed_; }
  // Whether it failed at least `times` times in a row and no attempt has lasted since.
  bool fails(int times, std::int64_t now_ms) const {
    return failed_ >= times && (planned_ || now_ms - began_ms_ <= kLastsMs);
  }

 private:
  std::int64_t pause_ms() const {
    if (in_a_row_ <= 1) return 0;
    return std::min(kPauseMostMs, unit_ms_ << std::min(in_a_row_ - 2, 20));
  }

  std::int64_t unit_ms_;
  std::int64_t began_ms_ = 0, due_ms_ = 0;
  int in_a_row_ = 0, failed_ = 0;
  bool planned_ = false;
};

}  // namespace crane::supervise
