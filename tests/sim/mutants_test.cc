// SPDX-License-Identifier: Apache-2.0
// GOAL    The checkers would notice if a rule of the protocol were missing.
// METHOD  Each mutant is the core, or the fabric, with one rule removed; the table in
//         consensus/sim/README.md contains the first seed whose world shows it.  Each world runs in
//         a child process, because a mutant may also trip an assertion of the core, which counts as
//         noticed. Mutants of membership run in worlds where members change all the time, those of
//         catch-up in worlds with small rings (options_for).
// CHECKS  Every mutant is in the table; its seed is at most kSeedsMax and catches it.
// REPLAY  crane-sim --mutant NAME [--changes | --laps] --seed N --trace; a new table: crane-sim
//         --mutants

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/sim/soak.h"

namespace {

namespace sim = crane::consensus::sim;
namespace core = crane::consensus::core;

constexpr std::uint64_t kSeedsMax = 100'000;

// The seeds of the rows `| scenario | rule | mutant | seed | noticed by |`.
std::map<std::string, std::uint64_t> quoted_seeds() {
  std::ifstream file("consensus/sim/README.md");
  REQUIRE(file.good());
  std::map<std::string, std::uint64_t> seeds;
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::string cell;
    std::string cells[6];
    for (auto& c : cells) std::getline(row, c, '|');
    const std::string mutant = cells[3].substr(0, cells[3].find_last_not_of(' ') + 1);
    if (cells[4].find_first_of("0123456789") != 1) continue;
    seeds[mutant.substr(mutant.find_first_not_of(' '))] = std::stoull(cells[4]);
  }
  return seeds;
}

}  // namespace

TEST_CASE("mutants: each removed rule is noticed in the world that the README names", "[sim]") {
  const auto seeds = quoted_seeds();
  for (int i = 1; i < core::kMutants; ++i) {
    const auto mutant = static_cast<core::Mutant>(i);
    INFO("mutant " << sim::name(mutant) << "; a new table: crane-sim --mutants");
    const auto row = seeds.find(sim::name(mutant));
    REQUIRE(row != seeds.end());
    CHECK(row->second <= kSeedsMax);
    const sim::Options options = sim::options_for(mutant);
    const sim::Verdict v = sim::run_in_child(row->second, options);
    CHECK(v.caught());
    std::printf("mutant %-19s (%s) seed %llu: %s\n", sim::name(mutant), sim::scenario(mutant),
                static_cast<unsigned long long>(row->second), v.text.c_str());
  }
}

TEST_CASE("soak: a violation is counted, named and shrunk to few fault classes", "[sim]") {
  sim::SoakOptions options;
  options.first = 1;
  options.count = 8;
  options.progress = false;
  options.world.mutant = core::Mutant::kMinorityCommit;
  const sim::SoakTotals totals = sim::soak(options);
  CHECK(totals.violations > 0);
  const sim::Verdict v = sim::hunt(1, 8, options.world);
  REQUIRE(v.caught());
  std::string without;
  const sim::Options least = sim::shrink(v.seed, options.world, without);
  CHECK(without.find("cut") != std::string::npos);
  CHECK(sim::run_in_child(v.seed, least).property() == v.property());
}
