// SPDX-License-Identifier: Apache-2.0
#pragma once
// Is there an order of the operations on one object, each at one moment between its call and its
// return, in which a sequential object gives the answers that were heard?
//
// The search of Wing and Gong (Testing and verifying concurrent objects, 1993) with Lowe's cache of
// (set of ordered operations, state) (Testing for linearizability, 2017), the way Porcupine does
// it: one key at a time.  What is searched: the calls before the first return are the candidates
// for the next place; one that the object accepts is taken out of the list; a return that is met
// means that its operation should have had a place by now, so the last decision is taken back.
//
// An open operation never returns: it may take any place after its call, or none.

#include <cstdint>
#include <span>
#include <vector>

#include "tests/linear/history.h"

namespace crane::linear {

// The sequential object of any model.
struct State {
  std::int64_t value = kNil;        // of a register or a counter; a counter begins with nil, as 0
  std::vector<std::int64_t> items;  // of a list
  bool operator==(const State&) const = default;
};

// Carries the operation out.  False when the object would not have answered so; an open operation
// is answered by anything.
bool apply(State& state, const Operation& operation);

enum class Verdict : std::uint8_t {
  kOk,
  kViolation,
  kUnknown,  // the budget was used up: says nothing, hence is no pass
};

// A part of the search left out or done wrongly, for the tests that show that this is noticed.
enum class Mutant : std::uint8_t {
  kNone,
  kNoRealTime,         // an operation may take a place before its call
  kCacheWithoutState,  // the cache forgets the state
  kOpenNever,          // open operations never happened
  kTrustReads,         // reads are not compared
};

struct Limits {
  std::uint64_t steps = 20'000'000;  // operations tried, per key
  Mutant test_only_mutant = Mutant::kNone;
};

struct Answer {
  Verdict verdict = Verdict::kOk;
  std::uint64_t steps = 0;
};

Answer check(std::span<const Operation> operations, const Limits& limits = {});

// All states that the object may be in after all returned operations (and any of the open ones), at
// most `most`; empty when there is none or the budget was used up.
std::vector<State> states_after(std::span<const Operation> operations, std::size_t most,
                                const Limits& limits = {});

}  // namespace crane::linear
