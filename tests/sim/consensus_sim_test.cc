// SPDX-License-Identifier: Apache-2.0
// GOAL    Whatever network, processors and processes do, the replicas deliver one log, lose nothing
//         that was committed, and become live again when the faults end.
// METHOD  Seeded worlds of 3 or 5 replicas on a simulated one-sided fabric: delays, cuts in one or
//         both directions, crashes with and without memory, stopped processors, torn and late
//         writes, clock skew and jumps, stalled applications, small rings that lap, forged bytes;
//         members are added, promoted and removed, the leader among them, and replicas that lost
//         their memory return; and scenes that go on with a fault.
// CHECKS  The classes of consensus/sim/checkers.h; every world has three leaders and 500 events.
// REPLAY  crane-sim --seed N --trace; CRANE_SEED=first CRANE_SEEDS=count choose others; longer:
//         make sim-soak.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "consensus/sim/cluster.h"

namespace {

namespace sim = crane::consensus::sim;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeeds = 10'000;
constexpr double kSecondsMax = 75;  // slow builds stop early and say how far they came

std::uint64_t seeds_wanted() {
  const char* text = std::getenv("CRANE_SEEDS");
  return text == nullptr ? kSeeds : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("consensus: no property breaks in any world, whatever fails", "[sim]") {
  const std::uint64_t first = sim::first_seed(1);
  const std::uint64_t wanted = seeds_wanted();
  const auto begin = Clock::now();
  std::uint64_t done = 0;
  std::uint64_t committed = 0;
  std::uint64_t views = 0;
  std::uint64_t changes = 0;
  std::uint64_t leaders_removed = 0;
  std::uint64_t returns = 0;
  std::uint64_t fetches = 0;
  std::uint64_t given_up = 0;
  crane::consensus::core::MoveCounts moves;
  double seconds = 0;
  for (; done < wanted && seconds < kSecondsMax; ++done) {
    const sim::Outcome o = sim::run_seed(first + done);
    INFO("replay: crane-sim --seed " << o.seed << " --trace");
    REQUIRE(o.violation == "");
    REQUIRE((o.views >= 3 || o.given_up));
    REQUIRE(o.events >= 500);
    committed += o.committed;
    views += o.views;
    changes += o.changes;
    leaders_removed += o.removals_of_leaders;
    returns += o.returns;
    fetches += o.fetches;
    given_up += o.given_up ? 1 : 0;
    sim::add(moves, o.moves);
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::printf("consensus sim: seeds %llu..%llu, %llu entries, %llu reigns, %.0f seeds/s\n",
              static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + done - 1),
              static_cast<unsigned long long>(committed), static_cast<unsigned long long>(views),
              static_cast<double>(done) / seconds);
  std::printf("  %llu changes of members, %llu removed the leader, %llu gave a lost vote back\n",
              static_cast<unsigned long long>(changes),
              static_cast<unsigned long long>(leaders_removed),
              static_cast<unsigned long long>(returns));
  // A world in which nothing happens proves nothing.
  CHECK(committed > done * 10);
  CHECK(views > done);
  if (done >= 200) {
    CHECK(changes > done);
    CHECK(leaders_removed > 0);
    CHECK(returns > 0);
    CHECK(fetches > 0);
    CHECK(given_up * 200 < done);
  }
  if (done < 2000) return;
  for (const sim::Move& move : sim::declared_moves(moves)) {
    INFO("declared move " << move.name);
    CHECK(move.taken * 1000 >= done);
  }
}

TEST_CASE("consensus: no property breaks while members change all the time", "[sim]") {
  const std::uint64_t first = sim::first_seed(1);
  const std::uint64_t wanted = std::min<std::uint64_t>(seeds_wanted(), 1000);
  const auto begin = Clock::now();
  sim::Options options;
  options.changes = true;
  std::uint64_t changes = 0;
  std::uint64_t done = 0;
  for (; done < wanted && std::chrono::duration<double>(Clock::now() - begin).count() < 30;
       ++done) {
    const sim::Outcome o = sim::run_seed(first + done, options);
    INFO("replay: crane-sim --changes --seed " << o.seed << " --trace");
    REQUIRE(o.violation == "");
    changes += o.changes;
  }
  CHECK(changes > done * 5);
}

TEST_CASE("consensus: no property breaks where whoever is away is lapped", "[sim]") {
  const std::uint64_t first = sim::first_seed(1);
  const std::uint64_t wanted = std::min<std::uint64_t>(seeds_wanted(), 500);
  const auto begin = Clock::now();
  sim::Options options;
  options.laps = true;
  std::uint64_t fetches = 0;
  std::uint64_t done = 0;
  for (; done < wanted && std::chrono::duration<double>(Clock::now() - begin).count() < 30;
       ++done) {
    const sim::Outcome o = sim::run_seed(first + done, options);
    INFO("replay: crane-sim --laps --seed " << o.seed << " --trace");
    REQUIRE(o.violation == "");
    fetches += o.fetches;
  }
  CHECK(fetches > done * 20);
}

TEST_CASE("consensus: no property breaks in small worlds, which are no smaller than 500 events",
          "[sim]") {
  const std::uint64_t first = sim::first_seed(1);
  const std::uint64_t wanted = std::min<std::uint64_t>(seeds_wanted(), 2000);
  const auto begin = Clock::now();
  sim::Options options;
  options.small = true;
  std::uint64_t events = 0;
  std::uint64_t done = 0;
  for (; done < wanted && std::chrono::duration<double>(Clock::now() - begin).count() < 20;
       ++done) {
    const sim::Outcome o = sim::run_seed(first + done, options);
    INFO("replay: crane-sim --small --seed " << o.seed << " --trace");
    REQUIRE(o.violation == "");
    REQUIRE((o.views >= 3 || o.given_up));
    REQUIRE(o.events >= 500);
    events += o.events;
  }
  CHECK(events < done * 7000);  // what they are for
}

TEST_CASE("consensus: the same seed gives the same world, event for event", "[sim]") {
  for (std::uint64_t seed = sim::first_seed(1); seed < sim::first_seed(1) + 50; ++seed) {
    const sim::Outcome a = sim::run_seed(seed);
    const sim::Outcome b = sim::run_seed(seed);
    INFO("seed " << seed);
    CHECK(a.digest == b.digest);
    CHECK(a.events == b.events);
    CHECK(a.committed == b.committed);
  }
}

TEST_CASE("consensus: a world without faults elects once and commits all", "[sim]") {
  for (const unsigned replicas : {1U, 2U, 3U, 5U, 7U}) {
    sim::Faults f;
    f.replicas = f.members = static_cast<std::uint8_t>(replicas);
    f.slow_per_mille = f.torn_per_mille = 0;
    f.incident_every_ns = 100'000'000'000;  // after the end
    sim::Cluster cluster(replicas, f, {});
    const sim::Outcome o = cluster.run();
    INFO("replicas " << replicas);
    CHECK(o.violation == "");
    CHECK(o.views == 1);
    CHECK(o.committed > 100);
  }
}
