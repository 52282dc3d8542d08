// SPDX-License-Identifier: Apache-2.0
// GOAL    A slice ends at its number of branches, however late the interrupts are (BRANCH-1).
// METHOD  A made-up thread executes instructions: some are branches, some are in libc, and some are
//         calls into Crane. A made-up counter interrupts it late.
// CHECKS  step(): the ends of slices, timely requests for interrupts, and slices that are given up.
#include "runtime/preload/ground/branch_steps.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace crane::branches;

namespace {

constexpr Lengths kLengths{1000, 100};

Event interrupt_at(std::uint64_t count) { return {What::kInterrupt, count}; }
Event step_at(std::uint64_t count, bool may_end = true) {
  return {What::kStep, count, false, may_end};
}
Event within_crane(What what, std::uint64_t count) { return {what, count, true}; }

// A slice with `left` branches left, in single steps.
Slice stepped(std::uint64_t left) {
  Slice slice = new_slice(kLengths);
  REQUIRE(step(slice, kLengths, interrupt_at(kLengths.slice - left)).next == Next::kStep);
  return slice;
}

// A fixed program: the kind of each instruction.
struct Program {
  bool is_branch(std::uint64_t at) const { return at % 7 == 3 || at % 11 == 5; }
  bool is_libc(std::uint64_t at) const { return at / 150 % 4 == 1; }
  bool is_call(std::uint64_t at) const { return at % 97 == 0; }  // into Crane
};

// The instructions at which the first slices end, with interrupts delayed according to `random`.
std::vector<std::uint64_t> ends(std::mt19937& random) {
  constexpr std::size_t kSlices = 30;
  const Program program;
  std::vector<std::uint64_t> found;
  Slice slice = new_slice(kLengths);
  std::uint64_t count = 0, raw = 0, due = kLengths.slice - kLengths.margin;
  bool steps = false;
  const auto late = [&] { return random() % kLengths.margin; };
  const auto obey = [&](const Action& action) {
    REQUIRE(action.next != Next::kStop);
    if (action.interrupt_in != 0) due = raw + action.interrupt_in + late();
    steps = action.next == Next::kStep;
    return action.next == Next::kEnd;
  };
  for (std::uint64_t at = 0; found.size() < kSlices; ++at) {
    if (program.is_call(at)) {
      steps = false;
      raw += random() % 500;  // Crane's own branches
      if (raw >= due) obey(step(slice, kLengths, within_crane(What::kInterrupt, count)));
      steps = slice.near;
    }
    count += program.is_branch(at);
    raw += program.is_branch(at);
    const std::uint64_t next = at + 1;
    bool over = steps && obey(step(slice, kLengths, step_at(count, !program.is_libc(next))));
    if (!over && (raw >= due || random() % 200 == 0))  // sometimes a foreign interrupt
      obey(step(slice, kLengths, interrupt_at(count)));
    if (!over) continue;
    found.push_back(next);
    slice = new_slice(kLengths);
    count = 0;
  }
  return found;
}

}  // namespace

TEST_CASE("slices end at the same instructions, however late the interrupts are") {
  std::mt19937 random(1);
  const auto first = ends(random);
  for (int i = 0; i < 50; ++i) REQUIRE(ends(random) == first);
}

TEST_CASE("a slice ends after its number of branches, and outside libc") {
  std::mt19937 random(2);
  const Program program;
  std::uint64_t at = 0;
  for (const std::uint64_t end : ends(random)) {
    CHECK_FALSE(program.is_libc(end));
    std::uint64_t branches = 0;
    for (; at < end; ++at) branches += program.is_branch(at);
    CHECK(branches >= kLengths.slice);
    CHECK(branches < 4 * kLengths.slice);
  }
}

TEST_CASE("an interrupt far from the end is requested again") {
  Slice slice = new_slice(kLengths);
  const Action action = step(slice, kLengths, interrupt_at(300));
  CHECK(action.next == Next::kRun);
  CHECK(action.interrupt_in == kLengths.slice - 300 - kLengths.margin);
}

TEST_CASE("an interrupt within the margin starts the single steps") {
  Slice slice = new_slice(kLengths);
  const Action action = step(slice, kLengths, interrupt_at(kLengths.slice - kLengths.margin));
  CHECK(action.next == Next::kStep);
  CHECK(action.interrupt_in == kLengths.slice - kLengths.margin);
  CHECK(step(slice, kLengths, step_at(kLengths.slice - 1)).next == Next::kStep);
  CHECK(step(slice, kLengths, step_at(kLengths.slice)).next == Next::kEnd);
}

TEST_CASE("an interrupt at the number of branches is too late, since it may be past the end") {
  Slice slice = new_slice(kLengths);
  CHECK(step(slice, kLengths, interrupt_at(kLengths.slice)).next == Next::kStop);
}

TEST_CASE("an interrupt inside Crane starts the single steps when the thread leaves Crane") {
  Slice slice = new_slice(kLengths);
  const auto count = kLengths.slice - 1;
  CHECK(step(slice, kLengths, within_crane(What::kInterrupt, count)).next == Next::kRun);
  CHECK(slice.near);
  CHECK(step(slice, kLengths, within_crane(What::kStep, count)).next == Next::kRun);
  CHECK(slice.near);
  CHECK(step(slice, kLengths, step_at(kLengths.slice)).next == Next::kEnd);
}

TEST_CASE("an interrupt between steps changes nothing") {
  Slice slice = stepped(5);
  const Action action = step(slice, kLengths, interrupt_at(kLengths.slice + 1));
  CHECK(action.next == Next::kStep);
  CHECK(action.interrupt_in == 0);
}

TEST_CASE("a step of a slice that has since been restarted is the last") {
  Slice slice = stepped(5);
  slice = new_slice(kLengths);
  CHECK(step(slice, kLengths, step_at(0)).next == Next::kRun);
}

TEST_CASE("a slice that cannot end within some branches continues for half a slice") {
  Slice slice = stepped(1);
  const std::uint64_t tried = kLengths.slice + kTriedBranches;
  CHECK(step(slice, kLengths, step_at(tried - 1, false)).next == Next::kStep);
  const Action action = step(slice, kLengths, step_at(tried, false));
  CHECK(action.next == Next::kRun);
  CHECK(action.interrupt_in == kLengths.slice / 2 - kTriedBranches - kLengths.margin);
  CHECK(slice.target == kLengths.slice * 3 / 2);
}
