// SPDX-License-Identifier: Apache-2.0
#pragma once
// Properties of the open operations of a history that spare the search from trying every subset of
// them. Each rule excludes an order only if another order is as good.
//
// INVARIANT LINEAR-1  An open set has its place directly before a get that returns its value;
//     otherwise it is not needed. A place directly before a set (or at the end) has no effect, so
//     the order without the open set is as good.
// INVARIANT LINEAR-2  Among open operations with effects that no client can distinguish (incr; push
//     of items that no range showed) the one called first goes first. Exchanging two of them
//     changes no answer, and the one called first may take any place that the other may take.
// INVARIANT LINEAR-3  A counter and a list only grow. An open operation has no place now if
//     it takes the object beyond an answer that has no place yet.

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
  // LINEAR-3, after an open operation.  `ordered` has a bit for each operation that has a place.
  bool bearable(const State& state, const std::vector<std::uint64_t>& ordered) const;

 private:
  std::span<const Operation> operations_;
  std::unordered_set<std::int64_t> shown_;  // values shown by an answer
  std::vector<std::size_t> before_;
  std::vector<std::size_t> returned_;
};

}  // namespace crane::linear
