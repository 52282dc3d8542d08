// SPDX-License-Identifier: Apache-2.0
// GOAL    Whatever happens to the replicas of a host, its clients notice nothing: each byte arrives
//         once, in its place, and each byte that was sent is in the log once.
// METHOD  Seeded worlds of 3 or 5 replicas with the production's connections on simulated sockets
//         (proxy/sim): kills, also of earlier writers; processes stopped anywhere, also inside a
//         call; leaders that do not know that they are deposed; servers that lag, slow clients,
//         half closes, resets, servers that are restored from checkpoints.  Each mutant lacks one
//         rule, and must be noticed among the first kMutantSeeds worlds.
// CHECKS  The properties of proxy/sim/group.h, so CONN-4, CONN-5, WRITER-1, WRITER-2, TABLE-1.
// REPLAY  crane-sim --connections --seed N --trace; a mutant's: crane-sim --mutant NAME --seed N
//         --trace; CRANE_SEED=first CRANE_SEEDS=count choose others.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "proxy/sim/group.h"
#include "tests/sim/soak.h"

namespace {

namespace sim = crane::consensus::sim;
using crane::proxy::sim::Count;
using crane::proxy::sim::kConnectionWorlds;
using crane::proxy::sim::kMutants;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeeds = 4000, kSeedsQuick = 500, kMutantSeeds = 5000;
constexpr double kSecondsMax = 30;  // slow builds stop early

sim::Options connections() {
  sim::Options options;
  options.application = &kConnectionWorlds;
  return options;
}

std::uint64_t seeds_wanted() {
  if (const char* text = std::getenv("CRANE_SEEDS")) return std::strtoull(text, nullptr, 10);
  return std::getenv("CRANE_TEST_QUICK") != nullptr ? kSeedsQuick : kSeeds;
}

std::uint64_t of(const sim::ApplicationCounts& counts, Count what) {
  return counts[static_cast<std::size_t>(what)];
}

}  // namespace

TEST_CASE("connections: no client notices faults of the replicas", "[sim][WRITER-2]") {
  const std::uint64_t first = sim::first_seed(1), wanted = seeds_wanted();
  const auto begin = Clock::now();
  sim::ApplicationCounts all{};
  std::uint64_t done = 0;
  double seconds = 0;
  for (; done < wanted && seconds < kSecondsMax; ++done) {
    const sim::Outcome o = sim::run_seed(first + done, connections());
    INFO("replay: " << sim::replay(first + done, connections()));
    REQUIRE(o.violation == "");
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += o.application[i];
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  const auto u = [&all](Count what) { return static_cast<unsigned long long>(of(all, what)); };
  std::printf(
      "connections sim: seeds %llu..%llu, %llu clients, %llu bytes heard, %llu take-overs, %llu "
      "connections adopted, %llu lost\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(first + done - 1),
      u(Count::kClients), u(Count::kBytes), u(Count::kTakeOvers), u(Count::kAdopted),
      u(Count::kLost));
  // A world in which nothing happens proves nothing.
  if (done < 200) return;
  CHECK(of(all, Count::kClients) > done * 3);
  CHECK(of(all, Count::kTakeOvers) > done);
  CHECK(of(all, Count::kAdopted) > done * 2);
  CHECK(of(all, Count::kEnded) > done / 4);
  CHECK(of(all, Count::kInside) > done / 10);
  CHECK(of(all, Count::kUnclaimed) > done / 50);
  CHECK(of(all, Count::kLost) < done / 2);
}

TEST_CASE("connections: the same seed gives the same world, byte for byte", "[sim]") {
  for (std::uint64_t seed = sim::first_seed(1); seed < sim::first_seed(1) + 20; ++seed) {
    const sim::Outcome a = sim::run_seed(seed, connections());
    const sim::Outcome b = sim::run_seed(seed, connections());
    INFO("seed " << seed);
    CHECK(a.digest == b.digest);
    CHECK(a.events == b.events);
    CHECK(a.application == b.application);
  }
}

TEST_CASE("connections: each removed rule is noticed", "[sim]") {
  for (int mutant = 1; mutant < kMutants; ++mutant) {
    sim::Options options = connections();
    options.application_mutant = mutant;
    const sim::Verdict v = sim::hunt(1, kMutantSeeds, options);
    INFO("mutant " << kConnectionWorlds.mutant_name(mutant));
    CHECK(v.caught());
    std::printf("mutant %-15s seed %llu: %s\n", kConnectionWorlds.mutant_name(mutant),
                static_cast<unsigned long long>(v.seed), v.text.c_str());
  }
}
