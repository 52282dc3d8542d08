// SPDX-License-Identifier: Apache-2.0
// GOAL    the driver keeps LOG-K1..K4 of consensus/consensus.h in real processes that are killed,
//         stopped and restarted, and a new leader takes over soon.
// METHOD  three or five node processes over shared memory, a trickle of inputs, signals.
// CHECKS  histories agree, have no gap and no input twice; times are printed, not asserted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "tests/fabric/node_process.h"

namespace crane::test {
namespace {

constexpr int kSoon = 20'000;  // generous: the machine may be busy

constexpr std::uint64_t kLongRing = 128U << 20;  // sparse; holds all entries
constexpr std::uint32_t kNoRole = 99;            // no role was reported yet

bool votes_as_follower(NodeGroup& g, std::uint8_t id) {
  return g.report(id).role == static_cast<std::uint32_t>(consensus::Role::kFollower) ||
         g.report(id).role == static_cast<std::uint32_t>(consensus::Role::kLeader);
}

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

std::uint64_t cpu_ns_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/schedstat";
  std::FILE* const f = std::fopen(path.c_str(), "r");
  unsigned long long ns = 0;
  if (f != nullptr) {
    if (std::fscanf(f, "%llu", &ns) != 1) ns = 0;
    std::fclose(f);
  }
  return ns;
}

}  // namespace

TEST_CASE("driver: a killed leader is replaced and becomes a follower after a restart",
          "[driver][processes]") {
  NodeGroup g(3);
  g.set_traffic(true);
  for (int round = 0; round < 3; ++round) {
    const std::uint8_t old = g.settled_leader();
    REQUIRE(g.wait_committed(old, g.report(old).committed + 200, kSoon));
    const std::uint64_t at = monotonic_ns();
    g.process(old).kill();
    const std::uint8_t now = g.leader(old);
    std::printf("  killed leader r%d: r%d leads after %.2f ms\n", old, now,
                ms(g.report(now).leader_since_ns - at));
    g.report(old).role = 0;
    REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
    g.start(old);
    REQUIRE(g.wait_committed(old, g.report(now).committed, kSoon));
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

TEST_CASE("driver: a stopped leader is replaced, and steps down when it is continued",
          "[driver][processes]") {
  NodeGroup g(3);
  for (int round = 0; round < 4; ++round) {
    const bool traffic = round % 2 == 0;
    g.set_traffic(traffic);
    const std::uint8_t old = g.settled_leader();
    if (traffic) {
      REQUIRE(g.wait_committed(old, g.report(old).committed + 200, kSoon));
    } else {
      let_pass_us(1'500'000);  // until it is idle: there is no event to wait for
    }
    const std::uint64_t at = monotonic_ns();
    g.process(old).stop();
    const std::uint8_t now = g.leader(old);
    std::printf("  stopped leader r%d (%s): r%d leads after %.2f ms\n", old,
                traffic ? "traffic" : "idle", now, ms(g.report(now).leader_since_ns - at));
    g.set_traffic(true);
    REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
    g.process(old).resume();
    REQUIRE(g.wait_committed(old, g.report(now).committed, kSoon));
    CHECK(g.report(old).role != static_cast<std::uint32_t>(consensus::Role::kLeader));
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

TEST_CASE("driver: five replicas outlive two, and commit nothing with three gone",
          "[driver][processes]") {
  NodeGroup g(5);
  g.set_traffic(true);
  const std::uint8_t first = g.settled_leader();
  g.process(first).kill();
  g.report(first).role = 0;
  const std::uint8_t old = g.leader(first);
  REQUIRE(g.wait_committed(old, g.report(old).committed + 100, kSoon));
  g.process(old).kill();
  g.report(old).role = 0;
  const std::uint8_t last = g.leader(old);
  REQUIRE(g.wait_committed(last, g.report(last).committed + 100, kSoon));
  std::uint8_t other = 0;
  while (other == first || other == old || other == last) ++other;
  g.process(other).kill();
  let_pass_us(100'000);
  const std::uint64_t stuck = g.report(last).committed;
  let_pass_us(300'000);  // to check that nothing happens, there is no event to wait for
  CHECK(g.report(last).committed <= stuck + 1);
  g.start(first);
  CHECK(g.wait_committed(g.leader(), stuck + 100, kSoon));
  g.check_histories();
}

TEST_CASE("driver: a replica that lost its memory recovers and counts again",
          "[driver][processes]") {
  const auto kind = GENERATE(consensus::FabricKind::kShm, consensus::FabricKind::kTcp);
  NodeGroup g(3, kind, "", 3, kLongRing);
  g.set_traffic(true);
  const std::uint8_t leader = g.settled_leader();
  const std::uint8_t lost = leader == 0 ? 1 : 0;
  const auto other = static_cast<std::uint8_t>(3 - leader - lost);
  g.process(lost).kill();
  g.lose_memory(lost);
  g.report(lost).role = kNoRole;
  g.start(lost);
  REQUIRE(until([&] { return let_pass_us(200), votes_as_follower(g, lost); }, kSoon));
  CHECK(until([&] { return let_pass_us(200), g.report(lost).voters == 3; }, kSoon));
  CHECK(g.report(lost).fatal == 0);
  g.process(other).kill();  // from now on every commit needs the replica's help
  const std::uint8_t by = g.leader(other);
  REQUIRE(g.wait_committed(by, g.report(by).committed + 200, kSoon));
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver: three replicas grow to five under load, which outlive two",
          "[driver][processes]") {
  const auto kind = GENERATE(consensus::FabricKind::kShm, consensus::FabricKind::kTcp);
  NodeGroup g(5, kind, "", 3, kLongRing);
  g.set_traffic(true);
  REQUIRE(g.wait_for_leader(-1, kSoon) >= 0);
  for (const std::uint8_t id : {std::uint8_t{3}, std::uint8_t{4}}) {
    g.report(id).role = kNoRole;
    if (id == 3) g.start(id);  // before its invitation; the other one starts after it
    REQUIRE(g.command(Command::kAdd, id, kSoon));
    if (id == 4) g.start(id);
    REQUIRE(g.command(Command::kPromote, id, kSoon));  // refused until it has caught up
    REQUIRE(until([&] { return let_pass_us(200), votes_as_follower(g, id); }, kSoon));
  }
  CHECK(until([&] { return let_pass_us(200), g.report(4).voters == 5; }, kSoon));
  const std::uint8_t old = g.leader();
  const std::uint8_t second = old == 1 ? 2 : 1;
  g.process(old).kill();
  g.process(second).kill();
  g.report(old).role = g.report(second).role = kNoRole;
  const std::uint8_t now = g.leader(old);
  REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver: leadership is transferred, and a removed leader hands over, under load",
          "[driver][processes]") {
  const auto kind = GENERATE(consensus::FabricKind::kShm, consensus::FabricKind::kTcp);
  NodeGroup g(3, kind, "", 3, kLongRing);
  g.set_traffic(true);
  const std::uint8_t first = g.settled_leader();
  const auto second = static_cast<std::uint8_t>((first + 1) % 3);
  int leader = -1;
  for (int i = 0; i < 20 && leader < 0; ++i) {  // a busy machine may make a hand-over fail
    REQUIRE(g.command(Command::kTransfer, second, kSoon));
    leader = g.wait_for_leader(first, kSoon / 20);
  }
  REQUIRE(leader >= 0);
  const auto old = static_cast<std::uint8_t>(leader);
  REQUIRE(g.wait_committed(old, g.report(old).committed + 100, kSoon));
  REQUIRE(g.command(Command::kRemove, old, kSoon));
  REQUIRE(until([&] { return let_pass_us(200), g.report(old).removed == 1; }, kSoon));
  CHECK(until([&] { return let_pass_us(200), g.report(old).fatal == 1; }, kSoon));
  g.process(old).kill();
  g.report(old).role = kNoRole;
  const std::uint8_t now = g.leader(old);
  REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
  CHECK(until([&] { return let_pass_us(200), g.report(now).voters == 2; }, kSoon));
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver: histories agree after random kills, stops, continues and restarts",
          "[driver][processes]") {
  // REPLAY  CRANE_SEED=<seed> repeats the choices, not the moments at which the kernel acts.
  const std::uint64_t seed = given_seed();
  const char* const rounds_granted = std::getenv("CRANE_ROUNDS");
  const int rounds = rounds_granted != nullptr ? std::atoi(rounds_granted) : 40;
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  NodeGroup g(3);
  g.set_traffic(true);
  enum class State { kRuns, kStopped, kDead };
  State state[3] = {State::kRuns, State::kRuns, State::kRuns};
  for (int round = 0; round < rounds; ++round) {
    const auto id = static_cast<std::uint8_t>(random() % 3);
    if (state[id] == State::kDead) {
      g.start(id);
      state[id] = State::kRuns;
    } else if (state[id] == State::kStopped) {
      g.process(id).resume();
      state[id] = State::kRuns;
    } else if (random() % 2 == 0) {
      g.process(id).kill();
      state[id] = State::kDead;
    } else {
      g.process(id).stop();
      state[id] = State::kStopped;
    }
    let_pass_us(random() % 60'000);  // varies the moment; does not synchronise
  }
  for (std::uint8_t id = 0; id < 3; ++id) {
    if (state[id] == State::kDead) g.start(id);
    if (state[id] == State::kStopped) g.process(id).resume();
    g.report(id).role = 0;
  }
  const auto most = [&] {
    std::uint64_t n = 0;
    for (std::uint8_t id = 0; id < 3; ++id) n = std::max<std::uint64_t>(n, g.report(id).committed);
    return n;
  };
  const std::uint64_t goal = most() + 100;
  for (std::uint8_t id = 0; id < 3; ++id) {
    INFO("replica " << int{id} << " at " << g.report(id).committed << " of " << goal);
    CHECK(g.wait_committed(id, goal, kSoon));
    CHECK(g.report(id).fatal == 0);
  }
  g.set_traffic(false);
  g.check_histories();
}

TEST_CASE("driver: a group of one commits alone", "[driver][processes]") {
  NodeGroup g(1);
  g.set_traffic(true);
  REQUIRE(g.wait_for_leader(-1, kSoon) == 0);
  REQUIRE(g.wait_committed(0, 500, kSoon));
  g.check_histories();
}

TEST_CASE("driver: an idle group costs next to no processor time and keeps its leader",
          "[driver][processes][idle]") {
  NodeGroup g(3);
  g.settled_leader();
  let_pass_us(1'000'000);  // longer than the time in which traffic counts as flowing
  const std::uint8_t leader = g.settled_leader();
  const std::uint64_t view = g.report(leader).view;
  std::uint64_t cpu = 0;
  for (std::uint8_t i = 0; i < 3; ++i) cpu -= cpu_ns_of(g.process(i).pid());
  const std::uint64_t from = monotonic_ns();
  let_pass_us(3'000'000);
  for (std::uint8_t i = 0; i < 3; ++i) cpu += cpu_ns_of(g.process(i).pid());
  const double percent =
      100.0 * static_cast<double>(cpu) / static_cast<double>(monotonic_ns() - from);
  std::printf("  idle group of three: %.3f %% of one core\n", percent);
  CHECK(percent < 5);
  CHECK(g.report(leader).view == view);
}

// Hidden (run it by its tag): the result depends on the loaded machine; it is printed.
TEST_CASE("driver: a busy machine rarely makes a leader lose its role", "[.load][processes]") {
  NodeGroup g(3);
  g.settled_leader();
  std::vector<std::unique_ptr<Child>> burners;
  for (int i = 0; i < 6; ++i) {
    burners.push_back(std::make_unique<Child>([] {
      std::atomic<std::uint64_t> n = 0;
      for (;;) n.fetch_add(1, std::memory_order_relaxed);
    }));
  }
  for (const bool traffic : {false, true}) {
    g.set_traffic(traffic);
    const std::uint64_t before = view_counter(View{g.report(g.settled_leader()).view.load()});
    for (int second = 0; second < 10; ++second) let_pass_us(1'000'000);
    const std::uint64_t after = view_counter(View{g.report(g.settled_leader()).view.load()});
    std::printf("  %s, six busy loops: %lu view changes in 10 s\n", traffic ? "traffic" : "idle",
                after - before);
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

}  // namespace crane::test
