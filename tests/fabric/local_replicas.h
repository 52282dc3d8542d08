// SPDX-License-Identifier: Apache-2.0
#pragma once
// Three replicas in this thread; replica 0 becomes the leader.  A test opens each with its own
// options.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <utility>

#include "consensus/consensus.h"
#include "dmt/base/clock.h"

namespace crane::test {

struct LocalReplicas {
  std::array<std::unique_ptr<consensus::Consensus>, 3> replicas;
  bool leads = false;  // whether replica 0 leads

  void open(std::uint8_t i, consensus::Options o) {
    if (i == 0) {
      o.callbacks.on_role = [this](consensus::Role role, auto, auto) {
        leads = role == consensus::Role::kLeader;
      };
    }
    auto opened = consensus::Consensus::open(std::move(o));
    REQUIRE(opened.ok());
    replicas[i] = std::move(opened).value();
    if (i > 0) replicas[i]->abdicate("replica 0 leads");
  }
  void iterate() {
    for (const auto& r : replicas) {
      r->poll(static_cast<std::uint64_t>(crane::monotonic_ns()));
      r->flush_doorbells();
    }
  }
  bool all_stream() {
    const auto members = replicas[0]->members();
    return std::all_of(members.begin(), members.end(),
                       [](const auto& m) { return m.id == ReplicaId{0} || m.streaming; });
  }
};

}  // namespace crane::test
