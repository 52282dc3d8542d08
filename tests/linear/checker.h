// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks whether there is an order of the operations on one object, each at one moment between its
// call and its return, in which a sequential object gives the recorded answers.
//
// This is the search of Wing and Gong (Testing and verifying concurrent objects, 1993) with Lowe's
// cache of (set of ordered operations, state) (Testing for linearizability, 2017), as in Porcupine:
// one key at a time. The calls before the first return are the candidates for the next place. A
// candidate that the object accepts is taken out of the list. A return in the list means that its
// operation should already have a place, so the last decision is taken back.
//
// An open operation never returns: it may take any place after its call, or none.

#include <cstdint>
#include <span>
#include <vector>

#include "tests/linear/history.h"

namespace crane::linear {

// The sequential object of any model.
struct State {
  std::int64_t value = kNil;        // of a register or counter; a counter starts with nil, i.e. 0
  std::vector<std::int64_t> items;  // of a list
  bool operator==(const State&) const = default;
};

// Executes the operation. Returns false if the object would not give this answer; an open operation
// accepts any answer.
bool apply(State& state, const Operation& operation);

enum class Verdict : std::uint8_t {
  kOk,
  kViolation,
  kUnknown,  // the budget is used up: neither ok nor a violation
};

// An omitted or wrong part of the search, for tests that show that this is detected.
enum class Mutant : std::uint8_t {
  kNone,
  kNoRealTime,         // an operation may get a place before its call
  kCacheWithoutState,  // the cache ignores the state
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

// Returns at most `most` states that the object may have after all returned operations (and any of
// the open ones). Empty if there is none or the budget is used up.
std::vector<State> states_after(std::span<const Operation> operations, std::size_t most,
                                const Limits& limits = {});

}  // namespace crane::linear
