// SPDX-License-Identifier: Apache-2.0
// GOAL    A node tries one thing at a time, and tries everything it can.
// METHOD  A server that answers steadily, in windows of virtual time, in a child.
// CHECKS  TRIAL-2; the processors that the child may use, and whether it polls.
#include "proxy/host/load_trials.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/node/in_child.h"

using namespace crane::node;

namespace {

struct Inputs {
  std::set<std::string> processors;
  bool polled = false, slept = false;
};

// Returns the ways that a node tries in `windows` busy windows.
Inputs see(const Config& config, int windows) {
  Inputs seen;
  LoadTrials trials(config);
  for (int i = 1; i <= windows; ++i) {
    trials.step(static_cast<std::uint64_t>(i) * 1000, i * PairedTrial::kWindowNs);
    seen.processors.insert(own_processors());
    (trials.polls() ? seen.polled : seen.slept) = true;
  }
  return seen;
}

}  // namespace

TEST_CASE("load trials: placement and polling are both tried", "[trial]") {
  std::vector<int> mine;
  REQUIRE(crane::setup::parse_cpus(own_processors(), mine));
  if (mine.size() < 2) return;  // one processor leaves no choice
  Config config;
  config.cpu = mine.back();
  const std::string all = own_processors(), server = std::to_string(config.cpu);
  CHECK(holds_in_child([&] {
    const Inputs seen = see(config, 4 * PairedTrial::kWindows);
    return seen.processors == std::set{all, server} && seen.polled && seen.slept &&
           own_processors() == all;
  }));
}

TEST_CASE("load trials: before any trial a node polls if answers are frequent", "[trial]") {
  std::vector<int> mine;
  REQUIRE(crane::setup::parse_cpus(own_processors(), mine));
  if (mine.size() < 2) return;  // one processor leaves none to wait on
  LoadTrials trials{Config{}};
  std::uint64_t answers = 0;
  std::int64_t now_ns = 0;
  const auto window = [&](std::uint64_t more) {
    trials.step(answers += more, now_ns += PairedTrial::kWindowNs);
    return trials.polls();
  };
  CHECK_FALSE(trials.polls());
  CHECK_FALSE(window(LoadTrials::kManyAnswers - 1));
  CHECK(window(LoadTrials::kManyAnswers));
  CHECK_FALSE(window(20));
  CHECK_FALSE(window(0));
}

TEST_CASE("load trials: a node stays where it is if the server has no processor of its own",
          "[trial]") {
  CHECK(holds_in_child([] {
    const std::string all = own_processors();
    const Config config;
    const Inputs seen = see(config, 4 * PairedTrial::kWindows);
    return seen.processors == std::set{all} && seen.polled && !LoadTrials(config).place();
  }));
}
