// SPDX-License-Identifier: Apache-2.0
// GOAL    the driver on the tcp fabric keeps LOG-K1..K4 of consensus/consensus.h in real processes
//         that are killed, restarted, stopped, and cut off from the others.
// METHOD  three node processes, a relay between each pair, a trickle of inputs, signals.
// CHECKS  histories agree, have no gap and no input twice; times are printed, not asserted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "consensus/consensus.h"
#include "tests/fabric/node_process.h"

namespace crane::test {
namespace {

constexpr int kSoon = 30'000;  // generous: the machine may be busy
constexpr auto kTcp = consensus::FabricKind::kTcp;

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

// Waits for a leader other than `old`, which was disturbed at `at`.
std::uint8_t next_leader(NodeGroup& g, std::uint8_t old, const char* what, std::uint64_t at) {
  const std::uint8_t now = g.leader(old);
  const std::uint64_t since = std::max(at, g.report(now).leader_since_ns.load());
  REQUIRE(g.wait_committed(now, g.report(now).committed + 1, kSoon));
  std::printf("  tcp: %s leader r%d: r%d leads after %.2f ms\n", what, old, now, ms(since - at));
  return now;
}

}  // namespace

TEST_CASE("driver on tcp: a killed leader is replaced and follows after a restart",
          "[driver][processes]") {
  NodeGroup g(3, kTcp);
  g.set_traffic(true);
  for (int round = 0; round < 3; ++round) {
    const std::uint8_t old = g.settled_leader();
    REQUIRE(g.wait_committed(old, g.report(old).committed + 200, kSoon));
    const std::uint64_t at = monotonic_ns();
    g.process(old).kill();
    const std::uint8_t now = next_leader(g, old, "killed", at);
    g.report(old).role = 0;
    REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
    g.start(old);
    REQUIRE(g.wait_committed(old, g.report(now).committed, kSoon));
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

TEST_CASE("driver on tcp: a follower that was killed or stopped catches up",
          "[driver][processes]") {
  NodeGroup g(3, kTcp);
  g.set_traffic(true);
  for (int round = 0; round < 2; ++round) {
    const std::uint8_t leader = g.settled_leader();
    const auto follower = static_cast<std::uint8_t>((leader + 1) % 3);
    if (round == 0) {
      g.process(follower).kill();
    } else {
      g.process(follower).stop();
    }
    REQUIRE(g.wait_committed(leader, g.report(leader).committed + 300, kSoon));
    if (round == 0) {
      g.start(follower);
    } else {
      g.process(follower).resume();
    }
    REQUIRE(g.wait_committed(follower, g.report(leader).committed, kSoon));
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

TEST_CASE("driver on tcp: a leader that is cut off is replaced, and follows after its return",
          "[driver][processes]") {
  NodeGroup g(3, kTcp);
  g.set_traffic(true);
  for (int round = 0; round < 2; ++round) {
    const std::uint8_t old = g.settled_leader();
    REQUIRE(g.wait_committed(old, g.report(old).committed + 100, kSoon));
    const std::uint64_t at = monotonic_ns();
    g.cut(old);
    const std::uint8_t now = next_leader(g, old, "cut off", at);
    REQUIRE(g.wait_committed(now, g.report(now).committed + 200, kSoon));
    REQUIRE(until([&] {
      return g.report(old).role != static_cast<std::uint32_t>(consensus::Role::kLeader);
    }));
    g.heal(old);
    REQUIRE(g.wait_committed(old, g.report(now).committed, kSoon));
  }
  g.set_traffic(false);
  g.settled_leader();
  g.check_histories();
}

TEST_CASE("driver on tcp: histories agree after random kills, stops and cuts",
          "[driver][processes]") {
  // REPLAY  CRANE_SEED=<seed> repeats the choices, not the moments at which the kernel acts.
  const std::uint64_t seed = given_seed();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  NodeGroup g(3, kTcp);
  g.set_traffic(true);
  for (int round = 0; round < 15; ++round) {
    const auto id = static_cast<std::uint8_t>(random() % 3);
    const auto what = random() % 3;
    if (what == 0) g.process(id).kill();
    if (what == 1) g.process(id).stop();
    if (what == 2) g.cut(id);
    let_pass_us(random() % 100'000);  // varies the moment; does not synchronise
    if (what == 0) g.start(id);
    if (what == 1) g.process(id).resume();
    if (what == 2) g.heal(id);
    let_pass_us(random() % 100'000);
  }
  for (std::uint8_t id = 0; id < 3; ++id) g.report(id).role = 0;
  std::uint64_t goal = 0;
  for (std::uint8_t id = 0; id < 3; ++id)
    goal = std::max<std::uint64_t>(goal, g.report(id).committed);
  goal += 100;
  for (std::uint8_t id = 0; id < 3; ++id) {
    const bool there = g.wait_committed(id, goal, kSoon);
    INFO("r0 " << g.report(0).committed << " r1 " << g.report(1).committed << " r2 "
               << g.report(2).committed << " of " << goal);
    CHECK(there);
    CHECK(g.report(id).fatal == 0);
  }
  g.set_traffic(false);
  g.check_histories();
}

}  // namespace crane::test
