// SPDX-License-Identifier: Apache-2.0
// GOAL    A second fault, while the first one is repaired, costs no answer, no majority and no
//         replica for good; no state of replicas and crane-run is stuck.
// METHOD  Worlds of whole replicas (proxy/sim/replicas) with the production's decisions: many at
//         random; of the small ones with two faults a part, all with crane-sim --replicas --search.
//         Each mutant has one rule removed, and is noticed in the world that the table names.
// CHECKS  The properties of proxy/sim/replicas/world.h, so LACK-1, LACK-2, ASK-1, ASK-2, VOTES-1,
//         TAKE-1, TAKE-2, KEEP-1, SCHEDULE-1, CATCHUP-1, OVERTAKE-1, LAG-1, LAG-2.
// REPLAY  crane-sim --replicas --seed N --trace; a mutant's: crane-sim --mutant NAME --seed N
//         --trace; CRANE_SEED=first CRANE_SEEDS=count choose others.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/replica_worlds.h"
#include "tests/sim/soak.h"

namespace {

using namespace crane::replica::sim;
using crane::replica::kMutants;
using crane::replica::Mutant;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWorlds = 100'000, kWorldsQuick = 5'000, kAtOnce = 1'000;
constexpr double kSecondsMax = 60;  // slow builds stop early

bool quick() { return std::getenv("CRANE_TEST_QUICK") != nullptr; }

std::uint64_t worlds_wanted() {
  if (const char* text = std::getenv("CRANE_SEEDS")) return std::strtoull(text, nullptr, 10);
  return quick() ? kWorldsQuick : kWorlds;
}

}  // namespace

TEST_CASE("replicas: faults while faults are repaired leave nothing stuck", "[sim][VOTES-1]") {
  const std::uint64_t first = crane::consensus::sim::first_seed(1), wanted = worlds_wanted();
  const auto begin = Clock::now();
  Totals all;
  double seconds = 0;
  for (std::uint64_t done = 0; done < wanted && seconds < kSecondsMax; done += kAtOnce) {
    const Totals t = run_many(first + done, std::min(kAtOnce, wanted - done), Mutant::kNone, 1);
    INFO("replay: crane-sim --replicas --seed " << t.first_seed << " --trace");
    REQUIRE(t.first == "");
    all.add(t);
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  print(all);
  // A world in which nothing happens proves nothing.
  if (all.worlds < kAtOnce) return;
  CHECK(all.answered > all.worlds * 20);
  CHECK(all.checkpoints > all.worlds / 2);
  CHECK(all.acceptors > all.worlds / 50);
  CHECK(all.given_up < all.worlds / 20);
}

TEST_CASE("replicas: no small world with two faults is stuck", "[sim][LACK-2]") {
  SearchOptions options;
  options.first_stride = quick() ? 31 : 11;
  options.second_stride = quick() ? 29 : 7;
  const SearchResult found = search(options);
  for (std::size_t i = 0; i < found.violations.size(); ++i) {
    UNSCOPED_INFO(text_of(found.violating[i]) << ": " << found.violations[i]);
  }
  CHECK(found.violations.empty());
  CHECK(found.worlds > (quick() ? 3'000U : 30'000U));
}

TEST_CASE("replicas: each rule that is removed is noticed", "[sim]") {
  const std::pair<Mutant, std::uint64_t> noticed[] = {
      {Mutant::kHoldForever, 49},    {Mutant::kDumpEarly, 1},        {Mutant::kRestartAnywhere, 75},
      {Mutant::kRetryUnusable, 341}, {Mutant::kLackingServes, 3503}, {Mutant::kAskAbsent, 19594},
      {Mutant::kForgetWaiting, 212}, {Mutant::kNeverLook, 75},       {Mutant::kRestartAtOnce, 75},
      {Mutant::kNeverVoteOnly, 38},  {Mutant::kNeverFull, 1},        {Mutant::kKeepOldPlace, 3},
      {Mutant::kForgetFailure, 11},  {Mutant::kCaughtUpAtOnce, 1},   {Mutant::kOvertakeAlways, 853},
      {Mutant::kKeepLead, 949},      {Mutant::kLeadLacking, 61107},
  };
  CHECK(std::size(noticed) == kMutants - 1);
  for (const auto& [mutant, seed] : noticed) {
    INFO("crane-sim --mutant " << name(mutant) << " --seed " << seed << " --trace");
    Settings settings;
    settings.mutant = mutant;
    CHECK(run_replicas(seed, settings).violation != "");
    settings.mutant = Mutant::kNone;
    CHECK(run_replicas(seed, settings).violation == "");
  }
}

// What use from outside found, before the rules were there.
TEST_CASE("replicas: losses that once stopped a group for good", "[sim][KEEP-1][SCHEDULE-1]") {
  struct Scene {
    const char* what;
    std::vector<Fault> faults;
    Mutant before;
  };
  const Fault first{120, FaultKind::kKill, 1, 0}, second{120, FaultKind::kKill, 2, 0},
      later{140, FaultKind::kKill, 2, 0}, full{90, FaultKind::kFullDisk, 0, 1500 * kMs};
  const Scene scenes[] = {
      {"both followers at once, behind a log that has wrapped",
       {first, second},
       Mutant::kNeverFull},
      {"one follower after the other", {first, later}, Mutant::kNeverFull},
      {"all three at once", {{120, FaultKind::kKillAll, 0, 0}}, Mutant::kNeverFull},
      {"both followers, while no checkpoint can be written",
       {full, first, later},
       Mutant::kForgetFailure},
  };
  for (const Scene& scene : scenes) {
    INFO(scene.what);
    CHECK(run_small(scene.faults, Mutant::kNone, nullptr).violation == "");
    CHECK(run_small(scene.faults, scene.before, nullptr).violation != "");
  }
}
