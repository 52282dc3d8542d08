// SPDX-License-Identifier: Apache-2.0
#pragma once
// One replica of the real protocol core on the LogGP fabric: it does what
// consensus/driver/driver.h does in a process.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <span>

#include "consensus/core/replica.h"
#include "eval/papers/loggp.h"

namespace crane::eval {

class CoreNode {
 public:
  CoreNode(LogGpNetwork& network, ReplicaId self, std::uint8_t replicas, std::uint64_t ring_bytes);
  void start();
  // REQUIRES: leads(), and the ring has room.
  Index propose(std::span<const std::byte> payload);
  bool leads() const noexcept { return core_.role() == consensus::Role::kLeader; }
  Index committed() const noexcept { return core_.committed(); }
  // The processor's time when committed() last rose.
  Pico committed_at() const noexcept { return committed_at_; }

 private:
  consensus::core::Now now() noexcept;
  void step(const consensus::core::Event& event);
  void carry_out();
  void carry_out(const consensus::core::Action& action);
  void wake();
  void plan_tick();

  LogGpNetwork& network_;
  LogGpFabric& fabric_;
  consensus::core::Replica core_;
  consensus::core::ActionList actions_;
  std::deque<consensus::core::Event> answers_;  // to permit and revoke
  std::uint64_t random_;
  std::uint64_t tick_planned_ns_ = 0;
  Pico committed_at_ = 0;
};

}  // namespace crane::eval
