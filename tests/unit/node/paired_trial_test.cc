// SPDX-License-Identifier: Apache-2.0
// GOAL    A node finds out which of two ways to run serves more, and keeps its way if neither is
//         clearly better.
// METHOD  A load whose answers and cost depend on the way, in steps of a millisecond of virtual
//         time: with noise, growing, with pauses.
// CHECKS  TRIAL-1, TRIAL-3; the way on which the trials settle, and how often trials are made.
#include "proxy/host/paired_trial.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

using crane::node::PairedTrial;
using crane::node::Way;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;

struct Load {
  // Answers per millisecond, and the node's ns per answer, for a time and a way.
  std::function<double(std::int64_t now_ns, Way way)> answers;
  std::function<double(Way way)> cost = [](Way) { return 10'000.0; };
};

// The number of the window since the node began to run.
std::int64_t window_at(std::int64_t now_ns) {
  return (now_ns - kMs - 1000 * kSecond) / PairedTrial::kWindowNs;
}

class Node {
 public:
  explicit Node(Load load) : load_(std::move(load)) {}

  void run(std::int64_t ns) {
    for (const std::int64_t end = now_ns_ + ns; now_ns_ < end; now_ns_ += kMs) {
      const Way way = trial_.way();
      const double answers = load_.answers(now_ns_, way);
      answers_ += answers;
      cpu_ns_ += answers * load_.cost(way);
      if (answers == 0) continue;  // it sleeps
      const Way chosen_way = trial_.step(
          {static_cast<std::uint64_t>(answers_), static_cast<std::int64_t>(cpu_ns_)}, now_ns_);
      CHECK(chosen_way == trial_.way());
      away_ += chosen_way != trial_.settled() ? 1 : 0;
    }
  }
  const PairedTrial& trial() const { return trial_; }
  // Milliseconds spent in the way on which it had not settled.
  int away() const { return away_; }

 private:
  const Load load_;
  PairedTrial trial_;
  std::int64_t now_ns_ = 1000 * kSecond;
  double answers_ = 0, cpu_ns_ = 0;
  int away_ = 0;
};

Way settles(Load load, std::int64_t ns = 3 * kSecond) {
  Node node(std::move(load));
  node.run(ns);
  CHECK(node.trial().trials() >= 1);
  return node.trial().settled();
}

Load steady(double first, double second) {
  return {[=](std::int64_t, Way way) { return way == Way::kFirst ? first : second; }};
}

}  // namespace

TEST_CASE("paired trial: more answers win", "[trial]") {
  CHECK(settles(steady(40, 55)) == Way::kSecond);
  CHECK(settles(steady(6, 3)) == Way::kFirst);
}

TEST_CASE("paired trial: as many answers for less processor time win", "[trial]") {
  Load load = steady(10, 10);
  load.cost = [](Way way) { return way == Way::kSecond ? 8'000.0 : 10'000.0; };
  CHECK(settles(load) == Way::kSecond);
  load.cost = [](Way way) { return way == Way::kSecond ? 12'000.0 : 10'000.0; };
  CHECK(settles(load) == Way::kFirst);
  // More answers justify more processor time.
  load = steady(10, 12);
  load.cost = [](Way way) { return way == Way::kSecond ? 12'000.0 : 10'000.0; };
  CHECK(settles(load) == Way::kSecond);
}

TEST_CASE("paired trial: a small difference changes nothing", "[trial]") {
  CHECK(settles(steady(10, 10)) == Way::kFirst);
  CHECK(settles(steady(10, 10.3)) == Way::kFirst);
  // A growing or falling load favours neither way.
  const auto growing = [](std::int64_t now_ns, Way) {
    return 1 + static_cast<double>(now_ns - 1000 * kSecond) / kSecond * 20;
  };
  CHECK(settles({growing}, 40 * kSecond) == Way::kFirst);
  const auto falling = [](std::int64_t now_ns, Way) {
    return 1000 - static_cast<double>(now_ns - 1000 * kSecond) / kSecond * 20;
  };
  CHECK(settles({falling}, 40 * kSecond) == Way::kFirst);
}

TEST_CASE("paired trial: outlier windows decide nothing", "[trial][TRIAL-1]") {
  // Outliers in two of the four windows of the second way, in the first trial and in the confirming
  // one.
  const auto bursts = [](std::int64_t now_ns, Way) {
    const std::int64_t window = window_at(now_ns);
    return window == 10 || window == 14 || window == 19 || window == 23 ? 100.0 : 10.0;
  };
  Node node({bursts});
  node.run(3 * kSecond);
  CHECK(node.trial().trials() >= 1);
  CHECK(node.trial().settled() == Way::kFirst);
}

TEST_CASE("paired trial: a guess is valid until a trial has found the better way",
          "[trial][TRIAL-1]") {
  PairedTrial trial;
  trial.guess(Way::kSecond);
  CHECK(trial.way() == Way::kSecond);
  CHECK(trial.settled() == Way::kSecond);
  trial.guess(Way::kFirst);
  CHECK(trial.way() == Way::kFirst);

  // `guessed`: the guess before every window.
  const auto settles_with = [](Way guessed, double first, double second) {
    PairedTrial asked;
    std::uint64_t answers = 0;
    for (int window = 1; window <= 40; ++window) {
      asked.guess(guessed);
      CHECK((asked.trying() || asked.trials() > 0 || asked.way() == guessed));
      answers += static_cast<std::uint64_t>(asked.way() == Way::kFirst ? first : second);
      asked.step({answers, 0}, window * PairedTrial::kWindowNs);
    }
    CHECK(asked.trials() >= 1);
    return asked.settled();
  };
  CHECK(settles_with(Way::kSecond, 100, 100) == Way::kSecond);
  CHECK(settles_with(Way::kSecond, 130, 100) == Way::kFirst);
  CHECK(settles_with(Way::kSecond, 100, 130) == Way::kSecond);
  CHECK(settles_with(Way::kFirst, 100, 130) == Way::kSecond);
}

TEST_CASE("paired trial: two trials with a guess between them do not confirm each other",
          "[trial][TRIAL-1]") {
  PairedTrial trial;
  std::uint64_t answers = 0;
  std::int64_t now_ns = 0;
  const auto run_until = [&](std::uint64_t trials, double first, double second) {
    for (int window = 0; window < 40 && trial.trials() < trials; ++window) {
      answers += static_cast<std::uint64_t>(trial.way() == Way::kFirst ? first : second);
      trial.step({answers, 0}, now_ns += PairedTrial::kWindowNs);
    }
    REQUIRE(trial.trials() == trials);
  };
  trial.guess(Way::kSecond);
  run_until(1, 130, 100);
  trial.guess(Way::kFirst);
  run_until(2, 100, 130);
  // The two trials disagree: there is no result, and the guess is valid.
  CHECK(trial.settled() == Way::kSecond);
  trial.guess(Way::kFirst);
  CHECK(trial.settled() == Way::kFirst);
}

TEST_CASE("paired trial: it reports how much the last window served", "[trial]") {
  PairedTrial trial;
  trial.step({50, 0}, 1000 * kSecond);
  trial.step({350, 0}, 1000 * kSecond + PairedTrial::kWindowNs);
  CHECK(trial.answers() == 300);
  trial.step({400, 0}, 1001 * kSecond);  // with a pause in it
  CHECK(trial.answers() == 0);
}

TEST_CASE("paired trial: a result that a second trial does not confirm changes nothing",
          "[trial][TRIAL-1]") {
  const auto once = [](std::int64_t now_ns, Way way) {
    const bool in_first = now_ns - 1000 * kSecond < 16 * PairedTrial::kWindowNs;
    return in_first && way == Way::kSecond ? 20.0 : 10.0;
  };
  Node node({once});
  node.run(3 * kSecond);
  CHECK(node.trial().trials() == 2);
  CHECK(node.trial().settled() == Way::kFirst);
}

TEST_CASE("paired trial: the better way is found in noise", "[trial]") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> noise(0.85, 1.15);  // of each millisecond
  const auto noisy = [&](std::int64_t, Way way) {
    return (way == Way::kSecond ? 50 : 40) * noise(random);
  };
  CHECK(settles({noisy}) == Way::kSecond);
}

TEST_CASE("paired trial: an idle node makes no trials", "[trial]") {
  Node idle(steady(0.1, 5));  // two or three answers in a window
  idle.run(60 * kSecond);
  CHECK(idle.trial().trials() == 0);
  CHECK(idle.away() == 0);
}

TEST_CASE("paired trial: a pause ends a trial, and the node returns to the way it settled on",
          "[trial]") {
  // Busy for twelve of twenty windows: trials begin, but none is ever completed.
  const auto bursts = [](std::int64_t now_ns, Way way) {
    return now_ns % (20 * PairedTrial::kWindowNs) < 12 * PairedTrial::kWindowNs
               ? (way == Way::kSecond ? 50.0 : 10.0)
               : 0.0;
  };
  Node node({bursts});
  node.run(20 * kSecond + 13 * PairedTrial::kWindowNs);
  CHECK(node.trial().trials() == 0);
  CHECK(node.trial().settled() == Way::kFirst);
  // Trials do not restart at once.
  CHECK(node.away() > 0);
  CHECK(node.away() < 20'000 / 50);
}

TEST_CASE("paired trial: a load shorter than eight windows is left alone", "[trial][TRIAL-3]") {
  const auto busy_for = [](int windows) {
    Node node({[=](std::int64_t now_ns, Way) {
      const std::int64_t window = window_at(now_ns);
      return window % 20 < windows ? 10.0 : 0.0;
    }});
    node.run(20 * kSecond);
    return node.away();
  };
  CHECK(busy_for(1) == 0);
  CHECK(busy_for(PairedTrial::kBusyBefore) == 0);
  CHECK(busy_for(PairedTrial::kBusyBefore + 3) > 0);
}

TEST_CASE("paired trial: trials become rarer, and follow a load that changes", "[trial]") {
  const std::int64_t change_ns = 1600 * kSecond;
  Node node({[=](std::int64_t now_ns, Way way) {
    const bool second = way == Way::kSecond;
    return now_ns < change_ns ? (second ? 12.0 : 10.0) : (second ? 10.0 : 12.0);
  }});
  node.run(600 * kSecond);
  CHECK(node.trial().settled() == Way::kSecond);
  const std::uint64_t before = node.trial().trials();
  CHECK(before <= 13);
  CHECK(node.away() < 6 * 600 * 10);  // less than one percent
  node.run(PairedTrial::kAgainMaxNs + 3 * kSecond);
  CHECK(node.trial().settled() == Way::kFirst);
  CHECK(node.trial().trials() > before);
}

TEST_CASE("paired trial: a much worse way serves only one window of a trial", "[trial][TRIAL-3]") {
  // Until the only trial of these two seconds is over.
  const auto away = [](Load load) {
    Node node(std::move(load));
    node.run(2 * kSecond);
    CHECK(node.trial().trials() == 1);
    CHECK(node.trial().settled() == Way::kFirst);
    return node.away();
  };
  const int window = PairedTrial::kWindowNs / kMs, whole = 4 * window;
  CHECK(away(steady(48, 30)) == window);  // 1.6 times as long
  CHECK(away(steady(42, 30)) == whole);
  CHECK(away(steady(10, 10)) == whole);
  // Only elapsed time counts: the cost affects no client.
  Load load = steady(10, 10);
  load.cost = [](Way way) { return way == Way::kSecond ? 40'000.0 : 10'000.0; };
  CHECK(away(load) == whole);
}

TEST_CASE("paired trial: all pairs so far decide whether a way is much worse", "[trial][TRIAL-3]") {
  // Returns how long the second way is tried, given its answers in the first pair and later.
  const auto away = [](double in_first, double later) {
    Node node({[=](std::int64_t now_ns, Way way) {
      const bool first_pair = window_at(now_ns) < PairedTrial::kBusyBefore + 2;
      return way == Way::kFirst ? 10.0 : first_pair ? in_first : later;
    }});
    node.run(2 * kSecond);
    CHECK(node.trial().trials() == 1);
    return node.away();
  };
  const int window = PairedTrial::kWindowNs / kMs;
  CHECK(away(8, 2) == 2 * window);
  CHECK(away(11, 2) == 4 * window);  // it has won one pair
}

TEST_CASE("paired trial: a trial that ended early confirms no result", "[trial][TRIAL-1]") {
  Node node({[](std::int64_t now_ns, Way way) {
    const std::int64_t window = window_at(now_ns);
    const bool second_trial = window >= 16 && window < 20;
    return way == Way::kFirst ? 10.0 : second_trial ? 2.0 : 20.0;
  }});
  node.run(2 * kSecond);
  CHECK(node.trial().trials() == 2);
  for (int i = 0; i < 600 && node.trial().settled() == Way::kFirst; ++i) {
    node.run(PairedTrial::kWindowNs);
  }
  CHECK(node.trial().settled() == Way::kSecond);
  CHECK(node.trial().trials() == 4);
}

TEST_CASE("paired trial: a much better way gets two whole trials", "[trial][TRIAL-1]") {
  Node node(steady(10, 40));
  node.run(2 * kSecond);
  CHECK(node.trial().trials() == 2);
  CHECK(node.trial().settled() == Way::kSecond);
  CHECK(node.away() == 8 * PairedTrial::kWindowNs / kMs);
}

TEST_CASE("paired trial: the first way is given up as early once the second is settled on",
          "[trial][TRIAL-3]") {
  Node node(steady(10, 40));
  node.run(2 * kSecond);
  const int away = node.away();
  node.run(PairedTrial::kAgainMinNs);
  CHECK(node.trial().trials() == 3);
  CHECK(node.away() - away == PairedTrial::kWindowNs / kMs);
}
