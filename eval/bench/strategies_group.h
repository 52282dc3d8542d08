// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes of bench-strategies: how fabrics are opened, and what followers do.
//
// Threads: one per process.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "eval/strategies/follower.h"
#include "eval/strategies/strategy.h"

namespace crane::eval {

using consensus::Consensus;
using consensus::Fabric;
using consensus::FabricEvent;

inline constexpr ReplicaId kLeader{0};
inline constexpr std::size_t kPayload = 64;
inline constexpr std::uint64_t kWire = consensus::core::entry_bytes(kPayload);
inline constexpr std::uint64_t kGiveUpNs = 10'000'000'000;

struct Settings {
  std::string fabric = "shm";
  std::uint8_t replicas = 3;
  int blocks = 20;
  int ops = 200;
  int runs = 5;
  unsigned port = 27100;  // the first of 2 * replicas
  // verbs: of the replicas' RDMA devices; with tests/vm they are these.
  std::vector<std::string> addresses = {"10.9.0.1", "10.9.0.2", "10.9.0.3"};
  std::string json;
};

// Each strategy has a part of the log memory of its own; so have the raw writes.
enum AreaNumber : unsigned { kMuArea, kDareArea, kApusArea, kRawArea, kAreas };
inline constexpr std::uint8_t kRawTag = 9;
Area area_of(unsigned number);

std::uint64_t now_ns();
// Says why, removes what remove_at_end() named, and ends the process with status 1.
[[noreturn]] void fail(const char* what);
void remove_at_end(const std::string& directory);

std::unique_ptr<Fabric> open_fabric(const Settings& s, const std::string& directory,
                                    ReplicaId self);
// The real consensus over the same kind of fabric; `leads` outlives it.
std::unique_ptr<Consensus> open_core(const Settings& s, const std::string& directory,
                                     ReplicaId self, bool& leads,
                                     std::function<void(Index)> on_committed);
// Exchanges the keys; returns when all have arrived.
void exchange(Fabric& fabric, KeyExchange& keys, std::uint8_t replicas, ReplicaId self);
// A follower's process: answers as every strategy wants, until it is killed.
[[noreturn]] void follow(const Settings& s, const std::string& directory, ReplicaId self);

// Data that leader and followers exchange outside the fabric.  Only `validated` is on a measured
// path.
struct Board {
  std::atomic<bool> spin;
  struct alignas(64) Follower {
    std::atomic<bool> spinning;
    std::atomic<std::uint64_t> validated;  // index in mu's area
    std::atomic<std::uint64_t> applied;    // index in apus's area
  };
  Follower followers[crane::kReplicasMax];
  alignas(64) std::atomic<std::uint64_t> ball;
};
// Shared by all processes forked after the first call.
Board& board();

// Hands everything that fabric.poll() gives to `on_event`.
template <typename F>
void take(Fabric& fabric, F&& on_event) {
  std::array<FabricEvent, 16> events;
  while (const std::size_t n = fabric.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) on_event(events[i]);
  }
}

}  // namespace crane::eval
