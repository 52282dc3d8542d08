// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known beforehand of the open operations of a history, so that the search need not try
// every subset of them: each rule leaves out orders only where another one does as well.
//
// INVARIANT LINEAR-1  An open set has its place directly before a get that answers its value, or is
//               not needed:
// what
//     else comes behind it would be a set (or nothing), and the order without it is as good.
// INVARIANT LINEAR-2  Of open operations whose effects no client can tell apart (incr; push of
//     items that no range showed) the one called first goes first: exchanging two of them changes
//     no answer, and the one called first may take any place that the other may.
// INVARIANT LINEAR-3  A counter and a list only grow.  An open operation that takes the object
//     beyond what an answer without a place yet said can have no place now.

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "tests/linear/history.h"

namespace crane::linear {

struct State;

class OpenOperations {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  explicit OpenOperations(std::span<const Operation> operations);

  bool needless(const Operation& open) const;  // LINEAR-1
  std::size_t before(std::size_t open) const {
    return before_[open];
  }  // LINEAR-2: its twin, or kNone
  // LINEAR-3, after an open operation; `ordered`: a bit per operation that has a place.
  bool bearable(const State& state, const std::vector<std::uint64_t>& ordered) const;

 private:
  std::span<const Operation> operations_;
  std::unordered_set<std::int64_t> shown_;  // values that an answer showed
  std::vector<std::size_t> before_;
  std::vector<std::size_t> returned_;
};

}  // namespace crane::linear
