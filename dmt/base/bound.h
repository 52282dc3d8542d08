// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bounds of our tables, as the log tells of them: a program that has reached one is answered
// with an error number, and the operator is told which bound it was.  A program that tries again
// and again would fill the disk, so that a bound is said at its first refusal and from then on when
// twice as many were refused as the last time.
//
// Each process counts for itself; a child of fork goes on where its parent was.
//
// Threads: any, also signal handlers.

#include <atomic>
#include <cstdint>

namespace crane {

class Bound {
 public:
  // "crane: limit: <most> <what>, <consequence>".
  constexpr Bound(std::uint64_t most, const char* what, const char* consequence) noexcept
      : most_(most), what_(what), consequence_(consequence) {}
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  // Something was refused.
  void say() noexcept;

 private:
  const std::uint64_t most_;
  const char* const what_;
  const char* const consequence_;
  std::atomic<std::uint64_t> refusals_{0};
};

}  // namespace crane
