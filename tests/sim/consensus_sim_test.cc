// SPDX-License-Identifier: Apache-2.0
// GOAL    Whatever the network, processors and processes do, the replicas deliver one log, lose no
//         committed entry, and become live again when the faults end.
// METHOD  Seeded worlds of 3 or 5 replicas on a simulated one-sided fabric: delays, cuts in one or
//         both directions, crashes with and without memory, stopped processors, torn and late
//         writes, clock skew and jumps, stalled applications, small rings that lap, forged bytes;
//         members are added, promoted and removed, the leader among them, and replicas that lost
//         their memory return; and scenes with a lasting fault.
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
constexpr double kSecondsMax = 75;  // slow builds stop early and report their number of worlds

std::uint64_t seeds_wanted() {
  const char* text = std::getenv("CRANE_SEEDS");
  return text == nullptr ? kSeeds : std::strtoull(text, nullptr, 10);
}

// Runs up to `most` worlds with `options`, which are `flag` of crane-sim, within a time limit.
// None may break a property; `look` gets each outcome.  Returns their number.
template <typename Look>
std::uint64_t sweep(const sim::Options& options, const char* flag, std::uint64_t most,
                    double seconds, Look look) {
  const std::uint64_t first = sim::first_seed(1);
  const std::uint64_t wanted = std::min(seeds_wanted(), most);
  const auto begin = Clock::now();
  std::uint64_t done = 0;
  for (; done < wanted && std::chrono::duration<double>(Clock::now() - begin).count() < seconds;
       ++done) {
    const sim::Outcome o = sim::run_seed(first + done, options);
    INFO("replay: crane-sim " << flag << " --seed " << o.seed << " --trace");
    REQUIRE(o.violation == "");
    look(o);
  }
  return done;
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
  sim::Options options;
  options.changes = true;
  std::uint64_t changes = 0;
  const std::uint64_t done =
      sweep(options, "--changes", 1000, 30, [&](const sim::Outcome& o) { changes += o.changes; });
  CHECK(changes > done * 5);
}

TEST_CASE("consensus: an analysis replica never votes or leads, whatever fails (M7)", "[sim]") {
  sim::Options options;
  options.analysis = true;
  std::uint64_t changes = 0;
  const std::uint64_t done =
      sweep(options, "--analysis", 1000, 30, [&](const sim::Outcome& o) { changes += o.changes; });
  CHECK(changes > done * 5);
}

TEST_CASE("consensus: no property breaks in worlds that lap absent replicas", "[sim]") {
  sim::Options options;
  options.laps = true;
  std::uint64_t fetches = 0;
  const std::uint64_t done =
      sweep(options, "--laps", 500, 30, [&](const sim::Outcome& o) { fetches += o.fetches; });
  CHECK(fetches > done * 20);
}

TEST_CASE("consensus: no property breaks in worlds that restore servers from checkpoints",
          "[sim]") {
  sim::Options options;
  options.checkpoints = true;
  std::uint64_t restored = 0;
  std::uint64_t refusals = 0;
  std::uint64_t rescues = 0;
  std::uint64_t keeps = 0;
  std::uint64_t outages = 0;
  std::uint64_t full = 0;
  const std::uint64_t done = sweep(options, "--checkpoints", 1000, 30, [&](const sim::Outcome& o) {
    restored += o.restored;
    refusals += o.refusals;
    rescues += o.rescues;
    keeps += o.keeps;
    outages += o.outages;
    full += o.full > 0 ? 1 : 0;
  });
  CHECK(restored > done * 3);
  if (done < 200) return;
  CHECK(refusals > done / 20);
  CHECK(rescues > done / 20);
  std::printf("  %llu places kept, %llu outages, in %llu of %llu worlds inputs waited for room\n",
              static_cast<unsigned long long>(keeps), static_cast<unsigned long long>(outages),
              static_cast<unsigned long long>(full), static_cast<unsigned long long>(done));
  CHECK(keeps > done);
  CHECK(outages > done / 2);
  CHECK(full > done / 20);
}

TEST_CASE("consensus: a group becomes live however slow its disks are", "[sim]") {
  sim::Options options;
  options.slow_disks = true;
  std::uint64_t committed = 0;
  const std::uint64_t done = sweep(options, "--slow-disks", 500, 20,
                                   [&](const sim::Outcome& o) { committed += o.committed; });
  CHECK(committed > done * 10);
}

TEST_CASE("consensus: no property breaks in small worlds, which have at least 500 events",
          "[sim]") {
  sim::Options options;
  options.small = true;
  std::uint64_t events = 0;
  const std::uint64_t done = sweep(options, "--small", 2000, 20, [&](const sim::Outcome& o) {
    REQUIRE((o.views >= 3 || o.given_up));
    REQUIRE(o.events >= 500);
    events += o.events;
  });
  CHECK(events < done * 7000);  // the purpose of small worlds
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

TEST_CASE("consensus: a world without faults elects once and commits everything", "[sim]") {
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
