// SPDX-License-Identifier: Apache-2.0
// What a start in disk mode finds besides the log's tail.  Under faults: tests/sim.
#include "consensus/store/recovery.h"

#include <catch2/catch.hpp>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/store/mem_store.h"

using namespace crane;
using namespace crane::consensus;

namespace {

constexpr std::uint64_t kLogId = 77;
constexpr std::uint64_t kRing = 8192;
constexpr std::uint32_t kPayloadMax = 1024;

}  // namespace

TEST_CASE("recovery: the members are found though their CONFIG is older than a ring (M3)",
          "[store]") {
  store::MemDisk disk;
  store::MemStore s(disk);
  REQUIRE(s.reset({kLogId, core::kFirstIncarnation}).ok());
  core::Members members = core::Members::first(3);
  members.set(ReplicaId{4}, core::MemberRole::kVoter, 9);
  std::vector<std::byte> list(core::members_bytes(members.count()));
  members.encode(list);
  std::vector<std::byte> memory(core::log_memory_bytes(kRing));
  core::LogRing ring(memory, kRing, kLogId, kPayloadMax);
  core::Cursor at;
  for (int i = 0; i < 60; ++i) {  // several rings
    core::EntryHeader h;
    h.view = 256;
    h.type = i == 3 ? core::kConfig : 1;
    const std::vector<std::byte> input(500, std::byte{1});
    const core::Cursor from = at;
    ring.append(at, h, i == 3 ? list : input);
    std::vector<std::byte> bytes(at.pos - from.pos);
    for (std::size_t b = 0; b < bytes.size(); ++b) {
      bytes[b] = memory[ring.offset(from.pos + b)];
    }
    REQUIRE(s.append(from, bytes, from).ok());
  }
  REQUIRE(at.pos > 3 * kRing);
  std::vector<std::byte> fresh(memory.size());
  store::Memory m;
  m.log = fresh;
  m.ring_bytes = kRing;
  m.payload_bytes_max = kPayloadMax;
  const auto recovered = store::recover(s, m, kLogId, true);
  REQUIRE(recovered.ok());
  REQUIRE(recovered.value().start.kind == core::StartKind::kSurvived);
  const auto saved = core::LogRing(fresh, kRing, kLogId, kPayloadMax).saved_config();
  REQUIRE(saved);
  CHECK(saved->members == members);
  CHECK(saved->at.index == Index{4});
}
