// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups that have a leader.

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/unit/consensus/core_harness.h"

namespace crane::consensus::core {

// Starts all; replica 0 leads.
inline void elect_first(InstantGroup& g) {
  g.start_all();
  g.run_for(200'000'000);
  REQUIRE(g.leader() == 0);
}

// Three replicas; replica 0 leads, and all hold its entries.
struct LedGroup : InstantGroup {
  // `calm_ns`: time between two rounds in which the leader's output reaches the others.
  LedGroup(Durability durability, std::uint64_t calm_ns) : InstantGroup(3), calm_ns_(calm_ns) {
    config.durability = durability;
    elect_first(*this);
    for (int i = 0; i < 20; ++i) REQUIRE(propose(0).ok());
    calm();
  }
  void calm() {
    for (int i = 0; i < 3; ++i) {
      if (leader() >= 0) flush(static_cast<unsigned>(leader()));
      run_for(calm_ns_);
    }
  }

 private:
  const std::uint64_t calm_ns_;
};

}  // namespace crane::consensus::core
