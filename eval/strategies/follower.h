// SPDX-License-Identifier: Apache-2.0
#pragma once
// The other side of the strategies: what followers' processors do, and how keys are exchanged.
//
// Threads: one each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/fabric/fabric.h"
#include "eval/strategies/strategy.h"

namespace crane::eval {

// Gives every follower a key to the leader's memory, and the leader one to every follower's.
// Each replica feeds it its events until done().
class KeyExchange {
 public:
  KeyExchange(consensus::Fabric& fabric, ReplicaId self, ReplicaId leader, std::uint8_t replicas);
  void on_event(const consensus::FabricEvent& event);
  // Sends what could not be sent before; ring doorbells after it.  True: all keys are here and all
  // own ones are given.
  bool done();
  // keys[peer]: to write that peer's memory; kNoKey where there is none.
  const std::vector<consensus::Key>& keys() const noexcept { return keys_; }

 private:
  bool partner(std::uint8_t peer) const noexcept;
  consensus::Fabric& fabric_;
  ReplicaId self_;
  ReplicaId leader_;
  std::vector<consensus::Key> keys_;   // for us
  std::vector<consensus::Key> given_;  // by us; kNoKey: not yet
  std::vector<bool> sent_;
};

// Scans an area of the own memory, and takes out every complete entry that follows the last one.
class Scanner {
 public:
  using OnEntry = std::function<void(Index, std::span<const std::byte> payload)>;
  Scanner(consensus::Fabric& fabric, const Area& area, OnEntry on_entry);
  // After each fabric.poll().
  void look();
  Index last() const noexcept { return at_.last.index; }

 private:
  consensus::core::LogRing ring_;
  consensus::core::Cursor at_;
  OnEntry on_entry_;
};

// A follower of `apus`: scans, stores in memory, replies to each entry one-sided.
class ApusFollower {
 public:
  // `key`: to the leader's memory.  `store` keeps an entry before it is replied to.
  ApusFollower(consensus::Fabric& fabric, ReplicaId self, ReplicaId leader, consensus::Key key,
               const Area& area, Scanner::OnEntry store = {});
  // After each fabric.poll(); ring the leader's doorbell after it.
  void look() { scanner_.look(); }
  Index last() const noexcept { return scanner_.last(); }

 private:
  void reply(Index index);
  consensus::Fabric& fabric_;
  ReplicaId self_;
  ReplicaId leader_;
  consensus::Key key_;
  Area area_;
  Scanner::OnEntry store_;
  std::vector<Reply> replies_;  // sources stay until the write completed
  Scanner scanner_;
};

}  // namespace crane::eval
