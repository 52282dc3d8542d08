// SPDX-License-Identifier: Apache-2.0
// GOAL    a tcp group keeps its leader and its links on a network that loses and delays packets.
// METHOD  three node processes; a relay between each pair loses pieces in the way that TCP shows
//         loss: both ways, one way, only on the log links; a trickle of inputs, a fixed number of
//         commits.
// CHECKS  elections and lost links are counted; histories agree; rates are printed.  A few are
//         allowed, for a machine that does not let the processes run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "consensus/core/step.h"
#include "consensus/fabric/tcp.h"
#include "tests/fabric/node_process.h"

namespace crane::test {
namespace {

constexpr int kSoon = 60'000;  // generous: the machine may be busy
constexpr std::uint64_t kCommits = 8'000;

struct Counted {
  std::uint64_t elections = 0;
  std::uint64_t links_lost = 0;
  std::uint64_t lost = 0;       // lost pieces
  std::uint64_t timed_out = 0;  // lost pieces that waited for a time-out
};

struct Loss {
  std::uint32_t there = 0, back = 0;  // per mille
  std::uint32_t links = Weather::kBoth;
  std::uint32_t delay_us = 0, jitter_us = 0;
};

std::uint64_t view_of(NodeGroup& g) {
  std::uint64_t view = 0;
  for (std::uint8_t i = 0; i < g.replicas(); ++i)
    view = std::max(view, g.report(i).own_view.load());
  return view_counter(View{view});
}

std::uint64_t links_lost_in(NodeGroup& g) {
  std::uint64_t n = 0;
  for (std::uint8_t i = 0; i < g.replicas(); ++i) n += g.report(i).links_lost;
  return n;
}

Counted serve(const char* what, const Loss& loss, std::uint64_t commits = kCommits) {
  NodeGroup g(3, consensus::FabricKind::kTcp);
  Weather& w = g.weather();
  w.links = loss.links;
  w.delay_us = loss.delay_us;
  w.jitter_us = loss.jitter_us;
  g.set_traffic(true);
  int leader = g.wait_for_leader(-1, kSoon);
  REQUIRE(leader >= 0);
  REQUIRE(g.wait_committed(static_cast<std::uint8_t>(leader), 500, kSoon));
  const std::uint64_t view = view_of(g);
  const std::uint64_t links = links_lost_in(g);
  w.loss_per_mille[0] = loss.there;
  w.loss_per_mille[1] = loss.back;
  const std::uint64_t since = monotonic_ns();
  std::uint64_t from = 0;
  const auto reached = [&] {
    std::uint64_t most = 0;
    for (std::uint8_t i = 0; i < 3; ++i)
      most = std::max<std::uint64_t>(most, g.report(i).committed);
    if (from == 0) from = most;
    return let_pass_us(500), most >= from + commits;
  };
  REQUIRE(until(reached, kSoon));
  const double seconds = static_cast<double>(monotonic_ns() - since) / 1e9;
  const Counted n{view_of(g) - view, links_lost_in(g) - links, w.lost, w.timed_out};
  std::printf(
      "  tcp, %s: %.0f commits/s, %llu pieces lost, %llu timed out, %llu probes, "
      "%llu elections, "
      "%llu links given up\n",
      what, static_cast<double>(commits) / seconds, static_cast<unsigned long long>(n.lost),
      static_cast<unsigned long long>(n.timed_out),
      static_cast<unsigned long long>(g.report(0).probes + g.report(1).probes + g.report(2).probes),
      static_cast<unsigned long long>(n.elections), static_cast<unsigned long long>(n.links_lost));
  w.loss_per_mille[0] = w.loss_per_mille[1] = 0;
  g.stop_traffic();
  g.check_histories();
  return n;
}

// A follower without a processor for long suspects its leader, too.  A crowded machine makes a few
// of these elections; a storm has more.
constexpr int kNoStorm = 8;

}  // namespace

// One operation at a time: a lost piece is the last on its link, and nothing follows it.
TEST_CASE("lossy: probes make TCP repair the last loss on a link", "[fabric][lossy]") {
  TcpGroup group;
  ReservedPorts way(1);
  Shared<Weather> weather;
  Child relay([&] { run_relay(way.endpoints()[0], group.endpoints()[1], *weather.operator->()); });
  auto options = group.options(0, 2);
  options.endpoints[1] = way.endpoints()[0];
  auto opened_a = consensus::TcpFabric::open(options);
  auto opened_b = consensus::TcpFabric::open(group.options(1, 2));
  REQUIRE((opened_a.ok() && opened_b.ok()));
  Fabric& a = *opened_a.value();
  Fabric& b = *opened_b.value();
  std::uint64_t completed = 0;
  const auto poll_both = [&] {
    for (const Seen& s : drain(a)) completed += s.kind == Kind::kCompletion && s.ok ? 1 : 0;
    drain(b);
    let_pass_us(50);
  };
  REQUIRE(until([&] { return poll_both(), a.connected(ReplicaId{1}) && b.connected(ReplicaId{0}); },
                kSoon));
  const auto key = b.permit_writes(ReplicaId{0});
  REQUIRE(key.ok());
  weather->loss_per_mille[0] = weather->loss_per_mille[1] = 200;
  const std::vector<std::byte> bytes(64, std::byte{1});
  for (std::uint64_t i = 1; i <= 400; ++i) {
    if (i % 2 == 0) {
      a.write(ReplicaId{1}, key.value(), 0, bytes, Token{i});
    } else {
      a.read_cell(ReplicaId{1}, 0, Token{i});
    }
    REQUIRE(until([&] { return poll_both(), completed >= i; }, kSoon));
  }
  const std::uint64_t lost = weather->lost;
  const std::uint64_t timed_out = weather->timed_out;
  std::printf("  tcp: 400 operations, %llu pieces lost, %llu timed out, %llu probes\n",
              static_cast<unsigned long long>(lost), static_cast<unsigned long long>(timed_out),
              static_cast<unsigned long long>(a.status().probes + b.status().probes));
  CHECK(lost >= 50);
  CHECK(timed_out * 4 <= lost);
}

TEST_CASE("lossy: at 1 % loss a tcp group keeps its links and has no storm of elections",
          "[driver][processes][lossy]") {
  const Counted n = serve("1 % lost", {10, 10});
  CHECK(n.elections <= kNoStorm);
  CHECK(n.links_lost == 0);
}

TEST_CASE("lossy: at 5 % loss, one way or both, a tcp group has no storm of elections",
          "[driver][processes][lossy]") {
  const Counted both = serve("5 % lost", {50, 50});
  CHECK(both.elections <= kNoStorm);
  CHECK(both.links_lost == 0);
  const Counted there = serve("5 % lost one way", {50, 0});
  CHECK(there.elections <= kNoStorm);
  CHECK(there.links_lost == 0);
}

TEST_CASE("lossy: loss only on the log links makes no storm of elections",
          "[driver][processes][lossy]") {
  const Counted n = serve("5 % lost on log links", {50, 50, Weather::kLog});
  CHECK(n.elections <= kNoStorm);
  CHECK(n.links_lost == 0);
}

TEST_CASE("lossy: a tcp group works at 20 % loss, and with delay and jitter",
          "[driver][processes][lossy]") {
  serve("20 % lost", {200, 200}, kCommits / 4);
  const Counted n =
      serve("20 ms +- 10 ms, 1 % lost", {10, 10, Weather::kBoth, 20'000, 10'000}, kCommits / 2);
  CHECK(n.elections <= kNoStorm);
  CHECK(n.links_lost == 0);
}

}  // namespace crane::test
