// SPDX-License-Identifier: Apache-2.0
// GOAL    A second fault, while the first one is repaired, costs no answer, no majority and no
//         replica permanently; no state of replicas and crane-run is stuck.
// METHOD  Worlds of whole replicas (proxy/sim/replicas) with the production's decisions: many at
//         random; of the small ones with two faults a part, all with crane-sim --replicas --search.
//         Each mutant lacks one rule, and is noticed in the world that the table names.
// CHECKS  The properties of proxy/sim/replicas/world.h, so LACK-1, LACK-2, ASK-1, ASK-2, VOTES-1,
//         TAKE-1, TAKE-2, KEEP-1, SCHEDULE-1, CATCHUP-1, OVERTAKE-1, LAG-1, START-3, TIER-1,
//         RESTART-1, RESTART-2, UPGRADE-1, UPGRADE-2, UPGRADE-3.
// REPLAY  crane-sim --replicas --seed N --trace; a mutant's: crane-sim --mutant NAME --seed N
//         --trace; CRANE_SEED=first CRANE_SEEDS=count choose others.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/replica_worlds.h"
#include "tests/sim/soak.h"

namespace {

using namespace crane::replica::sim;
using crane::replica::kMutants;
using crane::replica::Mutant;

constexpr std::uint64_t kWorlds = 60'000, kWorldsQuick = 5'000, kAtOnce = 1'000;

bool quick() { return std::getenv("CRANE_TEST_QUICK") != nullptr; }

std::uint64_t worlds_wanted() {
  if (const char* text = std::getenv("CRANE_SEEDS")) return std::strtoull(text, nullptr, 10);
  return quick() ? kWorldsQuick : kWorlds;
}

}  // namespace

TEST_CASE("replicas: faults during the repair of other faults leave no world stuck",
          "[sim][VOTES-1]") {
  const std::uint64_t first = crane::consensus::sim::first_seed(1), wanted = worlds_wanted();
  Totals all;
  for (std::uint64_t done = 0; done < wanted; done += kAtOnce) {
    const Totals t = run_many(first + done, std::min(kAtOnce, wanted - done), Mutant::kNone, 1);
    for (const Broken& one : t.broken) {
      UNSCOPED_INFO("crane-sim --replicas --seed " << one.seed << " --trace: " << one.text);
    }
    REQUIRE(t.violations == 0);
    all.add(t);
  }
  print(all);
  // A world in which nothing happens proves nothing.
  if (all.worlds < kAtOnce) return;
  CHECK(all.answered > all.worlds * 20);
  CHECK(all.checkpoints > all.worlds / 2);
  CHECK(all.acceptors > all.worlds / 50);
  CHECK(all.adopted > all.worlds / 50);
  CHECK(all.given_up < all.worlds / 20);
}

TEST_CASE("replicas: no small world with two faults is stuck", "[sim][LACK-2]") {
  SearchOptions options;
  options.hosts = GENERATE(false, true);
  options.clients = GENERATE(false, true);
  options.all_kinds = true;
  const unsigned wider = options.clients ? 3 : 1;
  options.first_stride = wider * (quick() ? 31 : 17);
  options.second_stride = wider * (quick() ? 29 : 11);
  const SearchResult found = search(options);
  for (std::size_t i = 0; i < found.violations.size(); ++i) {
    UNSCOPED_INFO(text_of(found.violating[i]) << ": " << found.violations[i]);
  }
  CHECK(found.violations.empty());
  CHECK(found.worlds > (quick() ? 1'500U : 10'000U));
}

TEST_CASE("replicas: each removed rule is noticed", "[sim]") {
  const std::pair<Mutant, std::uint64_t> noticed[] = {
      {Mutant::kHoldForever, 14},     {Mutant::kDumpEarly, 26},
      {Mutant::kRestartAnywhere, 57}, {Mutant::kRetryUnusable, 739},
      {Mutant::kLackingServes, 4326}, {Mutant::kAskAbsent, 2034},
      {Mutant::kForgetWaiting, 4979}, {Mutant::kNeverLook, 2},
      {Mutant::kRestartAtOnce, 164},  {Mutant::kNeverVoteOnly, 1221},
      {Mutant::kKeepOldPlace, 12},    {Mutant::kCaughtUpAtOnce, 3},
      {Mutant::kOvertakeAlways, 45},  {Mutant::kServeEarly, 111},
  };
  std::set<Mutant> all;
  for (const Scene& scene : scenes()) all.insert(scene.without);
  for (const auto& [mutant, seed] : noticed) {
    all.insert(mutant);
    INFO("crane-sim --mutant " << name(mutant) << " --seed " << seed << " --trace");
    Settings settings;
    settings.mutant = mutant;
    CHECK(run_replicas(seed, settings).violation != "");
    settings.mutant = Mutant::kNone;
    CHECK(run_replicas(seed, settings).violation == "");
  }
  CHECK(all.size() == kMutants);  // including kNone
}

// Findings from real use before the rules existed, and each kind of fault once.
TEST_CASE("replicas: a scene breaks a property without its rule, and none with it",
          "[sim][KEEP-1][SCHEDULE-1][CATCHUP-1][LAG-1][START-3]") {
  for (const Scene& scene : scenes()) {
    INFO("crane-sim --replicas --scene " << scene.name << " --trace: " << scene.what);
    CHECK(run_scene(scene, Mutant::kNone, nullptr).violation == "");
    if (scene.without == Mutant::kNone) continue;
    CHECK(run_scene(scene, scene.without, nullptr).violation != "");
  }
}
