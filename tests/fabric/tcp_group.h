// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group over tcp on the loopback device, for the tests that run on every kind of fabric.
//
// Those tests assume one-sided memory: a write completes even if its owner does not poll.  With tcp
// the owner's process takes part, so this group wraps each fabric (keeping_fabric.h).
//
// Threads: none.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/tcp.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/keeping_fabric.h"

namespace crane::test {

// Ports of the loopback device that no other process gets while this object exists.
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

class TcpGroup {
 public:
  static constexpr std::uint64_t kLogBytes = 4U << 20;
  static constexpr bool kOneSided = false;
  static constexpr std::size_t kReplicasMax = 5;

  std::unique_ptr<Fabric> open(std::uint8_t id, std::uint8_t replicas = 3);
  void lose_memory(std::uint8_t id);
  // The options that a replica is opened with, for tests that change them.
  consensus::TcpOptions options(std::uint8_t id, std::uint8_t replicas = 3) const;
  const std::vector<consensus::Endpoint>& endpoints() const noexcept { return ports_.endpoints(); }
  // hold(): only the owner polls this fabric; release() ends that.
  void hold(Fabric& fabric);
  void release(Fabric& fabric);
  // Send the first half of a write's frame, and the rest.
  static void half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                         std::span<const std::byte> bytes);
  static bool other_half(Fabric& fabric, ReplicaId peer, Key key);

 private:
  TemporaryDirectory directory_;
  ReservedPorts ports_{kReplicasMax};
  using Members = KeepingFabric<consensus::TcpFabric>::Members;
  std::shared_ptr<Members> members_ = std::make_shared<Members>();
};

}  // namespace crane::test
