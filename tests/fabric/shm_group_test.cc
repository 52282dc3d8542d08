// SPDX-License-Identifier: Apache-2.0
// Groups far larger than in real use: the consensus in many processes over shared memory.
#include "eval/bench/shm_group.h"

#include <catch2/catch.hpp>

using crane::eval::ShmGroup;
using crane::eval::ShmGroupOptions;

TEST_CASE("33 replicas apply the same log, survive their leader's death, and readmit it") {
  constexpr int kTimeoutMs = 60'000;
  ShmGroupOptions options;
  options.replicas = 33;
  options.ring_bytes = 64U << 10;
  ShmGroup group(options);
  const int first = group.wait_for_leader(kTimeoutMs);
  REQUIRE(first >= 0);
  REQUIRE(group.propose(first, 50, kTimeoutMs));
  REQUIRE(group.wait_all_applied(kTimeoutMs));
  REQUIRE(group.all_agree());
  CHECK(group.applied(32) >= 51);
  group.kill(first);
  const int second = group.wait_for_leader(kTimeoutMs);
  REQUIRE(second >= 0);
  REQUIRE(second != first);
  REQUIRE(group.propose(second, 50, kTimeoutMs));
  group.start(first);
  REQUIRE(group.wait_all_applied(kTimeoutMs));
  CHECK(group.all_agree());
  CHECK(group.applied(first) >= 102);
}
