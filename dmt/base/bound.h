// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports in the log that a program has reached a bound of Crane's tables.  The program gets an
// error number; the operator learns which bound it was.  A program that retries without end would
// fill the disk, so a bound is reported at its first refusal and then each time the number of
// refusals has doubled.
//
// Each process counts for itself; a child of fork continues with its parent's count.
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

  // Counts one refusal, and reports it if it is due.
  void count_refusal() noexcept;

 private:
  const std::uint64_t most_;
  const char* const what_;
  const char* const consequence_;
  std::atomic<std::uint64_t> refusals_{0};
};

}  // namespace crane
