// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/open_operations.h"

#include <algorithm>

#include "tests/linear/checker.h"

namespace crane::linear {
namespace {

// Returns whether the operation can still get its answer from an object in that state.
bool still_possible(const Operation& op, const State& state) {
  const std::int64_t count = state.value == kNil ? 0 : state.value;
  const auto size = static_cast<std::int64_t>(state.items.size());
  switch (op.action) {
    case Action::kIncr:
      return count < op.result;
    case Action::kPush:
      return size < op.result;
    case Action::kRange:
      return size <= static_cast<std::int64_t>(op.items.size()) &&
             (size == 0 || op.items[state.items.size() - 1] == state.items.back());
    case Action::kGet:  // of a counter
      return count <= (op.result == kNil ? 0 : op.result);
    case Action::kSet:
      break;
  }
  return true;
}

}  // namespace

OpenOperations::OpenOperations(std::span<const Operation> operations)
    : operations_(operations), before_(operations.size(), kNone) {
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    if (op.open()) continue;
    returned_.push_back(i);
    if (op.action == Action::kGet) shown_.insert(op.result);
    shown_.insert(op.items.begin(), op.items.end());
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const bool unseen = op.action == Action::kPush && shown_.count(op.argument) == 0;
    if (op.open() && (op.action == Action::kIncr || unseen)) alike.push_back(i);
  }
  std::stable_sort(alike.begin(), alike.end(), [&](std::size_t a, std::size_t b) {
    return operations[a].called_ns < operations[b].called_ns;
  });
  for (std::size_t k = 1; k < alike.size(); ++k) before_[alike[k]] = alike[k - 1];
}

bool OpenOperations::needless(const Operation& open) const {
  return open.action == Action::kSet && shown_.count(open.argument) == 0;
}

bool OpenOperations::bearable(const State& state, const std::vector<std::uint64_t>& ordered) const {
  return std::all_of(returned_.begin(), returned_.end(), [&](std::size_t i) {
    const bool placed = (ordered[i / 64] >> (i % 64) & 1) != 0;
    return placed || still_possible(operations_[i], state);
  });
}

}  // namespace crane::linear
