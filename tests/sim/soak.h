// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs many worlds in child processes: a mutant, or a bug, may trip an assertion of the core, which
// counts like any other violation and must not end the run.

#include <cstdint>
#include <cstdio>
#include <string>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

struct Verdict {
  std::uint64_t seed = 0;  // 0: nothing was found
  bool aborted = false;    // by an assertion
  std::string text;
  bool caught() const { return seed != 0; }
  // The property or assertion, without its details.
  std::string property() const;
};

// Runs one world in a child; caught() if a property broke.
Verdict run_in_child(std::uint64_t seed, const Options& options);
// Finds the first of `count` worlds in which a property breaks.
Verdict hunt(std::uint64_t first, std::uint64_t count, const Options& options);

struct SoakTotals {
  std::uint64_t done = 0;
  std::uint64_t violations = 0;
  std::uint64_t committed = 0;
  std::uint64_t views = 0;
  std::uint64_t events = 0;
  std::uint64_t incidents = 0;
  std::uint64_t views_min = 0;
  std::uint64_t events_min = 0;
  std::uint64_t given_up = 0;    // groups that lost too much to continue
  std::uint64_t small = 0;       // other worlds with fewer than 3 leaders or 500 events
  std::uint64_t small_seed = 0;  // one of them
  std::uint64_t views_after_max = 0;
  double seconds = 0;
  core::MoveCounts moves;
};
struct SoakOptions {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  unsigned jobs = 2;
  Options world;
  bool progress = true;
};
// Prints violations as they are found, with their replay.
SoakTotals soak(const SoakOptions& options);
// Prints totals and coverage.  Returns how many declared moves were taken less than once per two
// hundred worlds.
unsigned report(const SoakTotals& totals);

// Options with the mutant, for the kind of worlds in which its rule matters.
Options options_for(core::Mutant mutant);
// The command that replays one world.
std::string replay(std::uint64_t seed, const Options& options);
// Removes fault classes as long as the same property breaks; returns the remaining options.
Options shrink(std::uint64_t seed, const Options& options, std::string& without);

// The scenario or rule of consensus/DESIGN.md that the mutant violates, and the rule that it
// removes.
const char* scenario(core::Mutant mutant);
const char* rule(core::Mutant mutant);

}  // namespace crane::consensus::sim
