// SPDX-License-Identifier: Apache-2.0
#include "eval/papers/model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "dmt/base/assert.h"
#include "eval/papers/core_node.h"
#include "eval/strategies/follower.h"

namespace crane::eval {
namespace {

using consensus::FabricEvent;
using consensus::Key;
using consensus::Token;

constexpr ReplicaId kLeader{0};
constexpr unsigned kEntries = 5;
constexpr std::uint64_t kRing = 64U << 10;

// Runs until nothing is under way: each entry meets an idle group.
void settle(LogGpNetwork& network) {
  network.run_until([] { return false; });
}

}  // namespace

Pico strategy_latency(Rule rule, const LogGp& costs, std::uint8_t replicas, std::size_t bytes) {
  const Area area{0, kRing, 1};
  LogGpNetwork network(costs, replicas, area.bytes());
  LogGpFabric& fabric = network[0];
  const Group group{kLeader, replicas, std::vector<Key>(replicas, Key{1})};
  const auto leader = Strategy::make(rule, fabric, group, area, 1);
  Pico committed_at = 0;
  fabric.on_wake = [&] {
    std::array<FabricEvent, 1> event;
    const Index before = leader->committed();
    while (fabric.poll(event) > 0) leader->on_event(event[0]);
    leader->look();
    if (leader->committed() > before) committed_at = fabric.processor();
  };
  std::vector<std::unique_ptr<ApusFollower>> followers;
  for (std::uint8_t i = 1; rule == Rule::kApus && i < replicas; ++i) {
    LogGpFabric& own = network[i];
    followers.push_back(std::make_unique<ApusFollower>(
        own, ReplicaId{i}, kLeader, Key{1}, area,
        [&own, &costs](Index, std::span<const std::byte>) { own.work(costs.o_store); }));
    own.on_wake = [&own, follower = followers.back().get()] {
      std::array<FabricEvent, 1> event;
      while (own.poll(event) > 0) {
      }
      follower->look();
    };
  }
  const std::vector<std::byte> payload(bytes);
  Pico latency = 0;
  for (unsigned i = 0; i < kEntries; ++i) {
    fabric.begin();
    const Pico from = fabric.processor();
    if (rule == Rule::kApus) fabric.work(costs.o_store);  // APUS: DMT-L2, the leader's own log
    leader->propose(payload);
    settle(network);
    CRANE_ASSERT(leader->outstanding() == 0 && leader->failed() == 0);
    CRANE_ASSERT(i == 0 || committed_at - from == latency);
    latency = committed_at - from;
  }
  return latency;
}

Pico core_latency(const LogGp& costs, std::uint8_t replicas, std::size_t bytes, unsigned entries) {
  constexpr Pico kSpacing = 1000 * kMicro;
  LogGpNetwork network(costs, replicas, consensus::core::log_memory_bytes(kRing));
  std::vector<std::unique_ptr<CoreNode>> nodes;
  for (std::uint8_t i = 0; i < replicas; ++i) {
    nodes.push_back(std::make_unique<CoreNode>(network, ReplicaId{i}, replicas, kRing));
  }
  network.world.at(kSpacing, [&] {  // the core's clock is never 0
    for (const auto& n : nodes) n->start();
  });
  CoreNode& leader = *nodes[0];
  network.run_until([&] { return leader.leads() || network.world.now_ns() > 1000 * kSpacing; });
  CRANE_ASSERT(leader.leads());
  const std::vector<std::byte> payload(bytes);
  std::vector<Pico> latencies;
  for (unsigned i = 0; i < entries; ++i) {
    const Pico next = network.world.now_ns() + kSpacing;
    CRANE_ASSERT(network.run_until([&] { return network.world.now_ns() >= next; }));
    network[0].begin();
    const Pico from = network[0].processor();
    const Index index = leader.propose(payload);
    CRANE_ASSERT(network.run_until([&] { return leader.committed() >= index; }));
    latencies.push_back(leader.committed_at() - from);
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies[latencies.size() / 2];
}

Pico dare_read_latency(const LogGp& costs, std::uint8_t replicas) {
  LogGpNetwork network(costs, replicas, 64);
  LogGpFabric& fabric = network[0];
  int waiting_for = replicas / 2;
  Pico done_at = 0;
  fabric.on_wake = [&] {
    std::array<FabricEvent, 1> event;
    if (fabric.poll(event) > 0 && --waiting_for == 0) done_at = fabric.processor();
  };
  fabric.begin();
  for (std::uint8_t i = 1; i < replicas; ++i) fabric.read(ReplicaId{i}, 0, 8, Token{i});
  settle(network);
  return done_at;
}

Pico dare_write_bound(const LogGp& c, std::uint8_t replicas, std::size_t bytes) {
  const Pico f = (replicas - 1U) / 2;
  const Pico q1 = replicas / 2U;  // q - 1
  const bool is_inline = bytes <= c.inline_max;
  const auto& op = is_inline ? c.write_inline : c.write;
  const auto& in = c.write_inline;
  return 2 * q1 * in.o + in.L + 2 * q1 * c.o_p + q1 * op.o +
         std::max(f * op.o, op.L + op.gap(bytes));
}

Pico dare_read_bound(const LogGp& c, std::uint8_t replicas) {
  const Pico f = (replicas - 1U) / 2;
  const Pico q1 = replicas / 2U;
  return q1 * c.read.o + std::max(f * c.read.o, c.read.L) + q1 * c.o_p;
}

}  // namespace crane::eval
