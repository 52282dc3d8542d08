// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group over tcp on the loopback device, for the tests that run on every kind of fabric.
//
// Those tests speak of one-sided memory: what was written completes whether its owner polls or not.
// With tcp the owner's process takes part, so each fabric of this group is wrapped: whoever polls
// also polls, on behalf of their owners, the other fabrics of this process, until its own
// operations are complete and the requests sent to it have come; what those fabrics report is kept
// for their owners.  Other processes of the group must poll themselves.
//
// Threads: none.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/tcp.h"
#include "tests/fabric/harness.h"

namespace crane::test {

// Ports of the loopback device that no other process gets while this object lives.
class ReservedPorts {
 public:
  explicit ReservedPorts(std::size_t count);
  ~ReservedPorts();
  ReservedPorts(const ReservedPorts&) = delete;
  ReservedPorts& operator=(const ReservedPorts&) = delete;
  const std::vector<consensus::Endpoint>& endpoints() const noexcept { return endpoints_; }

 private:
  std::vector<int> sockets_;
  std::vector<consensus::Endpoint> endpoints_;
};

consensus::GroupSecret test_secret(std::uint8_t fill = 0x5a);

class PumpedFabric;
using Members = std::vector<PumpedFabric*>;

class TcpGroup {
 public:
  static constexpr std::uint64_t kLogBytes = 4U << 20;
  static constexpr bool kOneSided = false;
  static constexpr std::size_t kReplicasMax = 5;

  std::unique_ptr<Fabric> open(std::uint8_t id, std::uint8_t replicas = 3);
  void lose_memory(std::uint8_t id);
  // What a replica is opened with, for tests that change it.
  consensus::TcpOptions options(std::uint8_t id, std::uint8_t replicas = 3) const;
  const std::vector<consensus::Endpoint>& endpoints() const noexcept { return ports_.endpoints(); }
  // From now on nothing polls this fabric on its owner's behalf; and again.
  void hold(Fabric& fabric);
  void release(Fabric& fabric);
  // Sends half of a write's frame; the rest of it.
  static void half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                         std::span<const std::byte> bytes);
  static bool other_half(Fabric& fabric, ReplicaId peer, Key key);

 private:
  TemporaryDirectory directory_;
  ReservedPorts ports_{kReplicasMax};
  std::shared_ptr<Members> members_ = std::make_shared<Members>();
};

}  // namespace crane::test
