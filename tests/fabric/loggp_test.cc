// SPDX-License-Identifier: Apache-2.0
// The LogGP fabric keeps DARE's formulas, and runs the strategies and the real core the same way.
#include "eval/papers/loggp.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "eval/papers/model.h"

using namespace crane;
using namespace crane::eval;

namespace {

// Round numbers, so that sums show their terms.
LogGp machine() {
  LogGp m;
  m.read = {us(0.3), us(1.4), 700};
  m.write = {us(0.2), us(1.6), 750};
  m.write_inline = {us(0.4), us(0.9), 2000};
  m.message = {us(0.6), us(0.8), 800};
  m.G_m = 250;
  m.o_p = us(0.07);
  return m;
}

// Time of one operation from the post to its completion (DARE equation 1).
template <typename Post>
Pico time_of(Post&& post) {
  LogGpNetwork network(machine(), 2, 16384);
  LogGpFabric& fabric = network[0];
  Pico done = 0;
  fabric.on_wake = [&] {
    std::array<consensus::FabricEvent, 1> event;
    if (fabric.poll(event) > 0 && event[0].ok) done = fabric.processor();
  };
  fabric.begin();
  post(fabric);
  network.run_until([] { return false; });
  return done;
}

}  // namespace

TEST_CASE("one operation takes the time of DARE's equation 1: inline, up to the MTU and beyond") {
  const auto write = [](std::size_t bytes) {
    return time_of([bytes](LogGpFabric& f) {
      f.write(ReplicaId{1}, consensus::Key{1}, 0, std::vector<std::byte>(bytes),
              consensus::Token{1});
    });
  };
  CHECK(write(64) == us(0.4 + 0.9 + 0.07) + 63 * 2000);
  CHECK(write(1024) == us(0.2 + 1.6 + 0.07) + 1023 * 750);
  CHECK(write(8192) == us(0.2 + 1.6 + 0.07) + 4095 * 750 + 4096 * 250);
  CHECK(time_of([](LogGpFabric& f) { f.read(ReplicaId{1}, 0, 512, consensus::Token{1}); }) ==
        us(0.3 + 1.4 + 0.07) + 511 * 700);
}

TEST_CASE("simulated DARE stays within 15 % of its closed bounds, and the rules are in order") {
  for (const std::uint8_t n : std::vector<std::uint8_t>{3, 5, 7, 9}) {
    INFO("replicas " << int{n});
    const LogGp m = machine();
    const auto near = [](Pico a, Pico b) {
      return std::abs(static_cast<double>(a) / static_cast<double>(b) - 1) < 0.15;
    };
    const Pico dare = strategy_latency(Rule::kDare, m, n, 64);
    CHECK(near(dare, dare_write_bound(m, n, 136)));
    CHECK(near(dare_read_latency(m, n), dare_read_bound(m, n)));
    const Pico mu = strategy_latency(Rule::kMu, m, n, 64);
    CHECK(mu < strategy_latency(Rule::kApus, m, n, 64));
    CHECK(mu < dare);
    // The real core posts the same writes and counts the same completions.
    CHECK(core_latency(m, n, 64, 3) == mu);
  }
}
