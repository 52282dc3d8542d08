// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-sim --replicas: worlds of whole replicas, many at random or every small one.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/sim/replicas/scenes.h"
#include "proxy/sim/replicas/search.h"
#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {

// Totals over many worlds.
struct Counts {
  std::uint64_t worlds = 0, violations = 0, given_up = 0;
  std::uint64_t answered = 0, restarts = 0, checkpoints = 0, acceptors = 0, views = 0;
  std::uint64_t received = 0, adopted = 0, lost = 0;  // connections of clients
  std::int64_t whole_most_ns = 0;  // from the last fault until all replicas were ready

  void add(const Counts& more);
};
// A world that broke a property.
struct Broken {
  std::uint64_t seed = 0;
  std::string text;
};
inline constexpr std::size_t kBrokenMost = 20;
struct Totals : Counts {
  std::vector<Broken> broken;  // by seed; at most kBrokenMost
};
// Runs the worlds in `jobs` child processes, or in this process if `jobs` is 1.
Totals run_many(std::uint64_t first, std::uint64_t count, Mutant mutant, unsigned jobs);
void print(const Totals& totals);
// Runs every small world with two faults, or a part of them (SearchOptions); prints those without
// progress. Returns the exit status.
int search_all(const SearchOptions& options, unsigned jobs);
// Plays the scene with that name; prints its result.  Returns the exit status.
int play(const std::string& name, Mutant mutant, std::FILE* trace);
// Prints the table of mutants: rule, name, the scene or the first seed that notices, the property.
int list_mutants(std::uint64_t count);
// The first seed below `count` whose world notices the mutant; 0: none.
std::uint64_t hunt(Mutant mutant, std::uint64_t count, std::string& violation);

}  // namespace crane::replica::sim
