// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/grants.h"

#include <catch2/catch.hpp>
#include <random>

using namespace crane;
using namespace crane::replica;

namespace {
Observation at(std::int64_t now_ns) {
  Observation o;
  o.virtual_now_ns = now_ns;
  o.applied = o.proposed = Index{10};
  return o;
}
}  // namespace

TEST_CASE("G2: bubbles double while no input arrives and start small again after one", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(0);
  o.stalled = true;
  REQUIRE(policy.step(o).grant == 256);
  REQUIRE(policy.step(o).grant == 512);
  for (int i = 0; i < 20; ++i) (void)policy.step(o);
  const Decision largest = policy.step(o);
  REQUIRE(largest.what == Propose::kBubble);
  REQUIRE(largest.grant == 64 * 1024);
  policy.input_proposed();
  REQUIRE(policy.step(o).grant == 256);
}

TEST_CASE("G1: nothing is proposed while something is outstanding", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(1'000'000'000);
  o.stalled = o.grant_low = true;
  o.next_deadline_ns = 5;
  o.proposed = Index{11};
  REQUIRE(policy.step(o).what == Propose::kNothing);
  o.applied = Index{11};
  REQUIRE(policy.step(o).what == Propose::kBubble);
}

TEST_CASE("an idle server costs nothing: no bubble, no time, no reason to look again", "[grants]") {
  GrantPolicy policy({});
  const Decision d = policy.step(at(7));
  REQUIRE(d.what == Propose::kNothing);
  REQUIRE(d.look_again_ns == kNever);
}

TEST_CASE("a soft barrier at which no other thread can arrive is released at once", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(7);
  o.at_soft_barrier = true;
  o.proposed = Index{11};  // an input is in flight
  REQUIRE(policy.step(o).what == Propose::kNothing);
  o.applied = Index{11};
  REQUIRE(policy.step(o).what == Propose::kTime);
  REQUIRE(policy.step(o).what == Propose::kTime);
}

TEST_CASE("the next bubble is proposed before the grant is used up", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(0);
  o.grant_low = true;
  REQUIRE(policy.step(o).what == Propose::kBubble);
}

TEST_CASE("G1: the bubble that a slice waits for follows inputs, one at a time", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(0);
  o.slice_wanted = true;
  o.applied = Index{7};
  o.proposed = Index{11};  // inputs are in flight
  for (int i = 0; i < 3; ++i) {
    const Decision d = policy.step(o);
    REQUIRE(d.what == Propose::kBubble);
    REQUIRE(d.grant == 256);  // others run with it first
    o.proposed = next(o.proposed);
    o.applied = Index{value(o.proposed) - 1};  // all but the bubble
    REQUIRE(policy.step(o).what == Propose::kNothing);
    o.applied = o.proposed;
    o.proposed = Index{value(o.proposed) + 4};
  }
  o.slice_wanted = false;
  REQUIRE(policy.step(o).what == Propose::kNothing);
}

TEST_CASE("a bubble of an earlier reign is not waited for", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(0);
  o.slice_wanted = true;
  o.applied = Index{7};
  o.proposed = Index{11};
  REQUIRE(policy.step(o).what == Propose::kBubble);
  REQUIRE(policy.step(o).what == Propose::kNothing);
  policy.lead();
  REQUIRE(policy.step(o).what == Propose::kBubble);
}

TEST_CASE("a deadline is waited for, then announced by one TIME entry", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(1000);
  o.next_deadline_ns = 5'000'000;
  Decision d = policy.step(o);
  REQUIRE(d.what == Propose::kNothing);
  REQUIRE(d.look_again_ns == 5'000'000);
  o.virtual_now_ns = 5'000'001;
  d = policy.step(o);
  REQUIRE(d.what == Propose::kTime);
  REQUIRE(d.grant == policy.input_grant());
}

TEST_CASE("G3: deadlines close together share one TIME entry", "[grants]") {
  GrantPolicy policy({});
  Observation o = at(5'000'000);
  o.next_deadline_ns = 5'000'000;
  REQUIRE(policy.step(o).what == Propose::kTime);
  o.virtual_now_ns = 5'050'000;
  o.next_deadline_ns = 5'050'000;
  const Decision d = policy.step(o);
  REQUIRE(d.what == Propose::kNothing);
  REQUIRE(d.look_again_ns == 6'000'000);
  o.virtual_now_ns = d.look_again_ns;
  REQUIRE(policy.step(o).what == Propose::kTime);
}

TEST_CASE("classic: inputs grant nothing; a stall of W_timeout makes a bubble of N_clock",
          "[grants]") {
  GrantOptions options;
  options.classic = true;
  GrantPolicy policy(options);
  REQUIRE(policy.input_grant() == 0);
  Observation o = at(1'000'000);
  o.stalled = true;
  Decision d = policy.step(o);
  REQUIRE(d.what == Propose::kNothing);
  REQUIRE(d.look_again_ns == 1'100'000);
  o.virtual_now_ns = 1'100'000;
  d = policy.step(o);
  REQUIRE(d.what == Propose::kBubble);
  REQUIRE(d.grant == 1000);
  // An interruption of the stall restarts the wait.
  o.virtual_now_ns = 1'200'000;
  (void)policy.step(o);
  o.stalled = false;
  o.virtual_now_ns = 1'250'000;
  (void)policy.step(o);
  o.stalled = true;
  o.virtual_now_ns = 1'310'000;
  REQUIRE(policy.step(o).what == Propose::kNothing);
}

TEST_CASE("G1, G2, G3 hold in any sequence of observations", "[grants]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  GrantPolicy policy({});
  std::int64_t last_time = -1'000'000'000;
  Observation o = at(0);
  GrantTurns last_bubble = 0;
  for (int i = 0; i < 20'000; ++i) {
    o.virtual_now_ns += static_cast<std::int64_t>(random() % 700'000);
    o.stalled = random() % 3 == 0;
    o.grant_low = random() % 3 == 0;
    o.next_deadline_ns =
        random() % 2 == 0 ? kNever : o.virtual_now_ns + static_cast<std::int64_t>(random() % 1000);
    if (random() % 2 == 0) o.applied = o.proposed;
    if (random() % 10 == 0) {
      policy.input_proposed();
      last_bubble = 0;
      o.proposed = next(o.proposed);
    }
    const bool outstanding = o.proposed > o.applied;
    const Decision d = policy.step(o);
    if (d.what == Propose::kNothing) continue;
    REQUIRE_FALSE(outstanding);
    if (d.what == Propose::kTime) {
      REQUIRE(o.virtual_now_ns - last_time >= 1'000'000);
      REQUIRE(o.virtual_now_ns >= o.next_deadline_ns);
      last_time = o.virtual_now_ns;
    } else {
      REQUIRE(d.grant == (last_bubble == 0 ? 256 : std::min<GrantTurns>(last_bubble * 2, 65536)));
      last_bubble = d.grant;
    }
    o.proposed = next(o.proposed);
  }
}
