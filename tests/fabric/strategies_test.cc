// SPDX-License-Identifier: Apache-2.0
// The commit strategies of eval on each kind of fabric: the content of a follower's memory when the
// leader reports a commit, and that no strategy reports it too early.
#include "eval/strategies/strategy.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "consensus/sim/cluster.h"
#include "consensus/sim/world.h"
#include "eval/strategies/follower.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/tcp_group.h"

using namespace crane;
using namespace crane::eval;
using consensus::Fabric;
using consensus::FabricEvent;
using consensus::kNoKey;
using test::ShmGroup;
using test::TcpGroup;

namespace {

constexpr std::array kRules = {Rule::kMu, Rule::kDare, Rule::kApus};
constexpr ReplicaId kLeader{0};
const Area kArea{4096, 64U << 10, 4242};

// Polls everything out of `fabric` into `on_event`.
template <typename F>
void take(Fabric& fabric, F&& on_event) {
  std::array<FabricEvent, 16> events;
  while (const std::size_t n = fabric.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) on_event(events[i]);
  }
}

// A leader and its followers in this process, with keys exchanged.
template <typename Group>
struct Bench {
  Group group;
  std::vector<std::unique_ptr<Fabric>> fabrics;
  std::vector<std::unique_ptr<KeyExchange>> keys;
  std::unique_ptr<Strategy> leader;
  // The entry that the follower's processor (apus) or the test (others) reads from the memory.
  std::vector<std::vector<std::string>> found;
  std::vector<std::unique_ptr<Scanner>> scanners;
  std::vector<std::unique_ptr<ApusFollower>> repliers;

  Bench(Rule rule, std::uint8_t n) : found(n) {
    for (std::uint8_t i = 0; i < n; ++i) {
      fabrics.push_back(group.open(i, n));
      keys.push_back(std::make_unique<KeyExchange>(*fabrics[i], ReplicaId{i}, kLeader, n));
    }
    REQUIRE(test::until([&] {
      bool all = true;
      for (std::uint8_t i = 0; i < n; ++i) {
        take(*fabrics[i], [&](const FabricEvent& e) { keys[i]->on_event(e); });
        all = keys[i]->done() && all;
      }
      return all;
    }));
    leader = Strategy::make(rule, *fabrics[0], eval::Group{kLeader, n, keys[0]->keys()}, kArea,
                            /*tag=*/3);
    for (std::uint8_t i = 0; i < n; ++i) {
      auto keep = [this, i](Index index, std::span<const std::byte> payload) {
        CHECK(value(index) == found[i].size() + 1);
        found[i].push_back(test::text_of(payload));
      };
      const bool replies = i > 0 && rule == Rule::kApus;
      scanners.push_back(replies ? nullptr : std::make_unique<Scanner>(*fabrics[i], kArea, keep));
      repliers.push_back(replies
                             ? std::make_unique<ApusFollower>(*fabrics[i], ReplicaId{i}, kLeader,
                                                              keys[i]->keys()[0], kArea, keep)
                             : nullptr);
    }
  }
  void poll_leader() {
    take(*fabrics[0], [&](const FabricEvent& e) { leader->on_event(e); });
    leader->look();
  }
  void poll_follower(std::uint8_t i) {
    take(*fabrics[i], [](const FabricEvent&) {});
    if (repliers[i]) repliers[i]->look();
    if (scanners[i]) scanners[i]->look();
    take(*fabrics[i], [](const FabricEvent&) {});  // its replies are written
  }
  Pointers pointers(std::uint8_t i) {
    Pointers p;
    std::memcpy(&p, fabrics[i]->log_memory().data() + kArea.pointers(), sizeof p);
    return p;
  }
};

std::vector<std::uint8_t> ids(std::initializer_list<int> list) {
  return {list.begin(), list.end()};
}

std::string payload_of(consensus::sim::Random& random) {
  std::string text(random.between(1, 2000), '\0');
  for (char& c : text) c = static_cast<char>(random.below(256));
  return text;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "with every strategy each follower's memory contains every committed entry, over laps",
    "[strategies]", ShmGroup, TcpGroup) {
  for (const Rule rule : kRules) {
    INFO(name(rule));
    Bench<TestType> b(rule, 3);
    const std::uint64_t seed = consensus::sim::first_seed(7);
    INFO("CRANE_SEED=" << seed);
    consensus::sim::Random random(seed);
    std::vector<std::string> proposed;
    for (int round = 0; round < 40; ++round) {
      for (std::uint64_t burst = random.between(1, 8); burst > 0; --burst) {
        proposed.push_back(payload_of(random));
        REQUIRE(value(b.leader->propose(test::bytes_of(proposed.back()))) == proposed.size());
      }
      REQUIRE(test::until([&] {
        b.poll_leader();
        if (rule == Rule::kApus) b.poll_follower(1), b.poll_follower(2);
        return b.leader->outstanding() == 0;
      }));
      for (const std::uint8_t i : ids({0, 1, 2})) b.poll_follower(i);
      for (const auto& found : b.found) REQUIRE(found == proposed);
    }
    REQUIRE(b.leader->failed() == 0);
  }
}

TEMPLATE_TEST_CASE(
    "dare's followers hold the tail of the committed entries, and learn the commit pointer",
    "[strategies]", ShmGroup, TcpGroup) {
  Bench<TestType> b(Rule::kDare, 3);
  for (int i = 1; i <= 5; ++i) {
    b.leader->propose(test::bytes_of("entry"));
    for (int turn = 0; turn < 3; ++turn) b.poll_leader();  // entry, tail, commit pointer
    REQUIRE(value(b.leader->committed()) == static_cast<std::uint64_t>(i));
    b.poll_follower(1);
    const std::uint64_t end = static_cast<std::uint64_t>(i) * consensus::core::entry_bytes(5);
    CHECK(b.pointers(1).tail == end);
    CHECK(b.pointers(1).commit == end);
  }
}

TEMPLATE_TEST_CASE("a dead follower of three does not block any strategy", "[strategies]", ShmGroup,
                   TcpGroup) {
  for (const Rule rule : kRules) {
    INFO(name(rule));
    Bench<TestType> b(rule, 3);
    b.fabrics[2]->revoke_writes(kLeader);  // writes to it fail
    for (std::uint64_t i = 1; i <= 20; ++i) {
      b.leader->propose(test::bytes_of("x"));
      REQUIRE(test::until([&] {
        b.poll_leader();
        if (rule == Rule::kApus) b.poll_follower(1);
        return value(b.leader->committed()) == i;
      }));
    }
    b.poll_follower(1);
    CHECK(b.found[1].size() == 20);
    CHECK(b.leader->failed() == 1);
  }
}

TEMPLATE_TEST_CASE("no strategy commits with less than a majority", "[strategies]", ShmGroup,
                   TcpGroup) {
  for (const Rule rule : kRules) {
    INFO(name(rule));
    Bench<TestType> b(rule, 5);
    for (const std::uint8_t i : ids({2, 3, 4})) b.fabrics[i]->revoke_writes(kLeader);
    b.leader->propose(test::bytes_of("x"));
    for (int i = 0; i < 20; ++i) {
      b.poll_leader();
      b.poll_follower(1);
    }
    CHECK(value(b.leader->committed()) == 0);
    CHECK(b.leader->failed() == 3);
  }
}

TEMPLATE_TEST_CASE("apus commits when followers' processors replied, not when writes completed",
                   "[strategies]", ShmGroup, TcpGroup) {
  Bench<TestType> b(Rule::kApus, 5);
  b.leader->propose(test::bytes_of("x"));
  b.poll_leader();
  CHECK(value(b.leader->committed()) == 0);
  b.poll_follower(1);
  b.poll_leader();
  CHECK(value(b.leader->committed()) == 0);
  b.poll_follower(3);
  b.poll_leader();
  CHECK(value(b.leader->committed()) == 1);
}

TEMPLATE_TEST_CASE("dare commits when the tail pointers are written, not the entries",
                   "[strategies]", ShmGroup, TcpGroup) {
  Bench<TestType> b(Rule::kDare, 3);
  b.leader->propose(test::bytes_of("x"));
  for (const std::uint8_t i : ids({1, 2})) b.fabrics[i]->revoke_writes(kLeader);
  for (int i = 0; i < 5; ++i) b.poll_leader();  // the entries completed before the revoke
  CHECK(value(b.leader->committed()) == 0);
  CHECK(b.leader->failed() == 2);
}

TEST_CASE("a reply that is torn or of another log does not count", "[strategies]") {
  const Reply good = make_reply(Index{7}, 1);
  CHECK(valid(good, 1));
  CHECK_FALSE(valid(good, 2));
  Reply torn = good;
  torn.index = 8;
  CHECK_FALSE(valid(torn, 1));
}

TEMPLATE_TEST_CASE("a torn reply in the leader's memory commits nothing, and the whole one does",
                   "[strategies]", ShmGroup, TcpGroup) {
  Bench<TestType> b(Rule::kApus, 3);
  b.leader->propose(test::bytes_of("x"));
  Reply reply = make_reply(Index{1}, kArea.log_id);
  const auto write = [&] {
    b.fabrics[1]->write(kLeader, b.keys[1]->keys()[0], kArea.reply(ReplicaId{1}),
                        std::as_bytes(std::span(&reply, 1)), consensus::Token{1});
    b.poll_leader();
  };
  reply.crc ^= 1;
  write();
  CHECK(value(b.leader->committed()) == 0);
  reply.crc ^= 1;
  write();
  CHECK(value(b.leader->committed()) == 1);
}
