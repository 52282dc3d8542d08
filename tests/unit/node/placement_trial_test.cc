// SPDX-License-Identifier: Apache-2.0
// GOAL    a node finds by itself whether it runs beside its server or on all processors, and stays
//         where it is when nothing tells which is better.
// METHOD  a load whose answers and cost depend on the place, in steps of a millisecond of virtual
//         time; with noise, growing, with pauses.
// CHECKS  TRIAL-1; the place that the trials settle for, and how often they are made.
#include "proxy/node/placement_trial.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

using crane::node::NodePlace;
using crane::node::PlacementTrial;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;

struct Load {
  // Answers per millisecond, and the node's ns per answer, at a time and a place.
  std::function<double(std::int64_t now_ns, NodePlace place)> answers;
  std::function<double(NodePlace place)> cost = [](NodePlace) { return 10'000.0; };
};

class Node {
 public:
  explicit Node(Load load) : load_(std::move(load)) {}

  void run(std::int64_t ns) {
    for (const std::int64_t end = now_ns_ + ns; now_ns_ < end; now_ns_ += kMs) {
      const NodePlace place = trial_.place();
      const double answers = load_.answers(now_ns_, place);
      answers_ += answers;
      cpu_ns_ += answers * load_.cost(place);
      if (answers == 0) continue;  // it sleeps
      const NodePlace told = trial_.step(
          {static_cast<std::uint64_t>(answers_), static_cast<std::int64_t>(cpu_ns_)}, now_ns_);
      CHECK(told == trial_.place());
      away_ += told != trial_.settled() ? 1 : 0;
    }
  }
  const PlacementTrial& trial() const { return trial_; }
  // Milliseconds spent in the place that it had not settled for.
  int away() const { return away_; }

 private:
  const Load load_;
  PlacementTrial trial_;
  std::int64_t now_ns_ = 1000 * kSecond;
  double answers_ = 0, cpu_ns_ = 0;
  int away_ = 0;
};

NodePlace settles(Load load, std::int64_t ns = 3 * kSecond) {
  Node node(std::move(load));
  node.run(ns);
  CHECK(node.trial().trials() >= 1);
  return node.trial().settled();
}

Load steady(double roams, double shares) {
  return {[=](std::int64_t, NodePlace at) { return at == NodePlace::kRoams ? roams : shares; }};
}

}  // namespace

TEST_CASE("placement trial: more answers win", "[placement]") {
  CHECK(settles(steady(40, 55)) == NodePlace::kShares);
  CHECK(settles(steady(6, 3)) == NodePlace::kRoams);
}

TEST_CASE("placement trial: as many answers for less of the processor win", "[placement]") {
  Load load = steady(10, 10);
  load.cost = [](NodePlace at) { return at == NodePlace::kShares ? 8'000.0 : 10'000.0; };
  CHECK(settles(load) == NodePlace::kShares);
  load.cost = [](NodePlace at) { return at == NodePlace::kShares ? 12'000.0 : 10'000.0; };
  CHECK(settles(load) == NodePlace::kRoams);
  // More answers are worth more of it.
  load = steady(10, 12);
  load.cost = [](NodePlace at) { return at == NodePlace::kShares ? 12'000.0 : 10'000.0; };
  CHECK(settles(load) == NodePlace::kShares);
}

TEST_CASE("placement trial: what is not clear changes nothing", "[placement]") {
  CHECK(settles(steady(10, 10)) == NodePlace::kRoams);
  CHECK(settles(steady(10, 10.3)) == NodePlace::kRoams);
  // A load that grows, or falls, favours neither place.
  const auto growing = [](std::int64_t now_ns, NodePlace) {
    return 1 + static_cast<double>(now_ns - 1000 * kSecond) / kSecond * 20;
  };
  CHECK(settles({growing}, 40 * kSecond) == NodePlace::kRoams);
  const auto falling = [](std::int64_t now_ns, NodePlace) {
    return 1000 - static_cast<double>(now_ns - 1000 * kSecond) / kSecond * 20;
  };
  CHECK(settles({falling}, 40 * kSecond) == NodePlace::kRoams);
}

TEST_CASE("placement trial: two windows that stand out decide nothing", "[placement]") {
  // A burst comes in the first two windows that the node shares.
  const auto burst = [](std::int64_t now_ns, NodePlace at) {
    const std::int64_t since = now_ns - 1000 * kSecond;
    return since > 200 * kMs && since < 500 * kMs && at == NodePlace::kShares ? 100.0 : 10.0;
  };
  Node node({burst});
  node.run(3 * kSecond);
  CHECK(node.trial().trials() == 1);
  CHECK(node.trial().settled() == NodePlace::kRoams);
}

TEST_CASE("placement trial: the better place is found in noise", "[placement]") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> noise(0.85, 1.15);  // of each millisecond
  const auto noisy = [&](std::int64_t, NodePlace at) {
    return (at == NodePlace::kShares ? 50 : 40) * noise(random);
  };
  CHECK(settles({noisy}) == NodePlace::kShares);
}

TEST_CASE("placement trial: an idle node tries nothing", "[placement]") {
  Node idle(steady(0.1, 5));  // ten answers in a window
  idle.run(60 * kSecond);
  CHECK(idle.trial().trials() == 0);
  CHECK(idle.away() == 0);
}

TEST_CASE("placement trial: a pause ends a trial where the node had settled", "[placement]") {
  // Busy for 500 ms in each second: no trial is ever whole.
  const auto bursts = [](std::int64_t now_ns, NodePlace at) {
    return now_ns % kSecond < 500 * kMs ? (at == NodePlace::kShares ? 50.0 : 10.0) : 0.0;
  };
  Node node({bursts});
  node.run(20 * kSecond + 600 * kMs);
  CHECK(node.trial().trials() == 0);
  CHECK(node.trial().settled() == NodePlace::kRoams);
  CHECK(node.away() > 0);
}

TEST_CASE("placement trial: they come less often, and follow a load that changes", "[placement]") {
  const std::int64_t change_ns = 1600 * kSecond;
  Node node({[=](std::int64_t now_ns, NodePlace at) {
    const bool shares = at == NodePlace::kShares;
    return now_ns < change_ns ? (shares ? 12.0 : 10.0) : (shares ? 10.0 : 12.0);
  }});
  node.run(600 * kSecond);
  CHECK(node.trial().settled() == NodePlace::kShares);
  const std::uint64_t before = node.trial().trials();
  CHECK(before <= 12);
  CHECK(node.away() < 6 * 600 * 10);  // less than one part of a hundred
  node.run(PlacementTrial::kAgainMaxNs + 3 * kSecond);
  CHECK(node.trial().settled() == NodePlace::kRoams);
  CHECK(node.trial().trials() > before);
}
