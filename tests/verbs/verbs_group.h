// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group over RDMA for the tests that run on every kind of fabric.
//
// Reads, writes and cells need only the caller's processor; connections need the peer's, too
// (keeping_fabric.h).
//
// Threads: none.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/fabric/verbs.h"
#include "tests/fabric/keeping_fabric.h"

namespace crane::test {

class VerbsGroup {
 public:
  using Fence = consensus::Fence;
  using HugePages = consensus::HugePages;
  static constexpr std::uint64_t kLogBytes = 4U << 20;
  static constexpr bool kOneSided = true;
  static constexpr bool kPartialWrites = true;  // a write that has not completed may exist in part
  static constexpr int kSlow = 5;
  static constexpr bool kNoBacklog = true;  // writes land whatever the owner does
  // Log memory on huge pages: the machine for these tests has them.
  explicit VerbsGroup(Fence fence = Fence::kDeregister, HugePages pages = HugePages::kRequire);
  std::unique_ptr<Fabric> open(std::uint8_t id, std::uint8_t replicas = 3);
  void lose_memory(std::uint8_t id);
  // Until release() only the fabric's owner polls it.
  void hold(Fabric& fabric) noexcept;
  void release(Fabric& fabric) noexcept;
  // A device has no half of a post: the writer is stopped before it, and other_half() posts it.
  static void half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                         std::span<const std::byte> bytes);
  static bool other_half(Fabric& fabric, ReplicaId peer, Key key);

 private:
  TemporaryDirectory directory_;
  std::uint16_t port_;
  Fence fence_;
  HugePages pages_;
  using Members = KeepingFabric<consensus::VerbsFabric>::Members;
  std::shared_ptr<Members> members_;
};

class VerbsResetGroup : public VerbsGroup {
 public:
  VerbsResetGroup() : VerbsGroup(Fence::kQueuePairReset, HugePages::kNever) {}
};

}  // namespace crane::test
