// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of live checking so far: up to where this replica and a majority were equal, and the
// differences.  A difference that no majority settles ends nothing: from a later log index on the
// replicas are compared again (verification.h, HashBody::restarts).
//
// Threads: one object, one thread.  Pure: no clock, no I/O.
//
// INVARIANT LIVE-A1  unbroken() never moves past a difference that no majority settled: a new
//                    comparison covers only what follows restarted_from(), and proves nothing about
//                    what precedes it.

#include <cstdint>
#include <string>

namespace crane::proxy {

class Alarms {
 public:
  // This replica and a majority were equal at this cut.
  void agreed(std::uint64_t index);
  // So were all voters, and each cut covers all that precedes it: the last difference is over,
  // because the replica that differed is back.
  void all_agreed() noexcept { over_ = restarted_from_ == 0; }
  // The replicas differ, as far as this one knows.
  bool differ() const noexcept { return !none() && !over_; }
  // This replica and a majority differed at this cut.  `when` is the wall clock time as text.
  void raised(std::string what, std::uint64_t index, const std::string& when);
  // Outputs before this log index are no longer compared.
  void restart_from(std::uint64_t index);

  bool none() const noexcept { return count_ == 0; }
  std::uint64_t count() const noexcept { return count_; }
  const std::string& last() const noexcept { return last_; }
  // Equal from the beginning up to this log index.
  std::uint64_t unbroken() const noexcept { return unbroken_; }
  // The last cut at which they were equal, possibly after a restart of the comparison.
  std::uint64_t verified() const noexcept;
  std::uint64_t restarted_from() const noexcept { return restarted_from_; }
  // For the status: the last difference, since when there are any, and what is known since then.
  std::string text() const;

  // Restores the state of a checkpoint.
  void restore(std::uint64_t unbroken, std::uint64_t restarted_from) noexcept;

 private:
  std::uint64_t unbroken_ = 0;
  std::uint64_t restarted_from_ = 0;  // 0: everything is compared
  std::uint64_t since_ = 0;           // the last equal cut after restarted_from_
  std::uint64_t count_ = 0;
  bool over_ = false;  // the last difference
  std::string last_, first_when_;
  std::uint64_t first_index_ = 0;
};

}  // namespace crane::proxy
