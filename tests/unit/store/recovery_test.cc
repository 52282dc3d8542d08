// SPDX-License-Identifier: Apache-2.0
// The data that a start in disk mode finds in addition to the log's tail. For faults see tests/sim.
#include "consensus/store/recovery.h"

#include <algorithm>
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

TEST_CASE("recovery: the members are found even if their CONFIG is older than a ring (M3)",
          "[store]") {
  store::MemDisk disk;
  store::MemStore s(disk);
  REQUIRE(s.reset({kLogId, core::kFirstIncarnation}).ok());
  core::Members members = core::Members::first(3);
  members.set(ReplicaId{4}, MemberRole::kVoter, 9);
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

namespace {

// A store with 30 consecutive entries, 20 of them known to be committed, of a replica without its
// memory.
struct Stored {
  store::MemDisk disk;
  store::MemStore s{disk};
  std::vector<std::byte> memory = std::vector<std::byte>(core::log_memory_bytes(kRing));
  std::vector<core::Cursor> at = {core::Cursor{}};
  core::Members members = core::Members::first(3);

  explicit Stored(unsigned entries = 30) {
    REQUIRE(s.reset({kLogId, 7}).ok());
    members.set(ReplicaId{4}, MemberRole::kVoter, 9);
    std::vector<std::byte> ring_memory(memory.size());
    core::LogRing ring(ring_memory, kRing, kLogId, kPayloadMax);
    for (unsigned i = 0; i < entries; ++i) {
      core::EntryHeader h;
      h.view = 256;
      h.type = 1;
      core::Cursor next = at.back();
      ring.append(next, h, std::vector<std::byte>(100, std::byte(i)));
      std::vector<std::byte> bytes(next.pos - at.back().pos);
      ring.copy_out(at.back().pos, bytes);
      at.push_back(next);
      REQUIRE(s.append(at[i], bytes, at[std::min(i + 1, 20U)]).ok());
    }
    REQUIRE(s.promise(View{512}).ok());
  }
  core::Checkpoint checkpoint(unsigned index) const {
    return {at[index], View{768}, {{View{256}, Index{2}}, members}};
  }
  Result<store::Recovered> recover(const core::Checkpoint* c, bool acceptor_only = false,
                                   unsigned low_water = 0) {
    store::Memory m;
    if (low_water != 0) {  // the memory exists
      m.survived = true;
      m.promise[core::kIncarnation] = 7;
      m.promise[core::kPromisedView] = 512;
      m.promise[core::kLowWaterPos] = at[low_water].pos;
      m.promise[core::kLowWaterIndex] = low_water;
      m.promise[core::kLowWaterView] = value(at[low_water].last.view);
    }
    m.log = memory;
    m.ring_bytes = kRing;
    m.payload_bytes_max = kPayloadMax;
    return store::recover(s, m, kLogId, true, c, acceptor_only);
  }
  auto saved_config() { return core::LogRing(memory, kRing, kLogId, kPayloadMax).saved_config(); }
};

}  // namespace

TEST_CASE("recovery: entries that a checkpoint's server missed are replayed from the store",
          "[store]") {
  Stored d;
  const core::Checkpoint c = d.checkpoint(12);
  const auto r = d.recover(&c);
  REQUIRE(r.ok());
  CHECK(r.value().start.kind == core::StartKind::kSurvived);
  CHECK(r.value().replay_to == Index{20});
  CHECK(r.value().incarnation == 7);
  CHECK_FALSE(r.value().starts_again);
  REQUIRE(d.saved_config());
  CHECK(d.saved_config()->members == d.members);     // its CONFIG may be in no store any more
  const core::Checkpoint beyond = d.checkpoint(25);  // committed, which the store did not know
  REQUIRE(d.recover(&beyond).ok());
  CHECK(d.s.state().last == d.at[30]);
}

TEST_CASE("recovery: a store that ends before the checkpoint restarts there and keeps its promise",
          "[store][C5]") {
  Stored d(15);
  Stored whole;
  core::Checkpoint c = whole.checkpoint(25);
  c.view = View{300};  // lower than the promised view
  const auto r = d.recover(&c);
  REQUIRE(r.ok());
  CHECK(r.value().starts_again);
  CHECK(r.value().start.kind == core::StartKind::kSurvived);
  CHECK(r.value().start.promise[core::kPromisedView] == 512);
  CHECK(r.value().start.promise[core::kLowWaterIndex] == 25);
  CHECK(r.value().start.promise[core::kLowWaterPos] == c.at.pos);
  CHECK(r.value().replay_to == Index{25});
  store::MemStore again(d.disk);
  CHECK(again.state().damage.empty());
  CHECK(again.state().identity == store::Identity{kLogId, 7});
  CHECK(again.state().promise == View{512});
  CHECK(again.state().first == c.at);
  CHECK(again.state().last == c.at);
  std::vector<std::byte> bytes;
  REQUIRE(whole.s.read(Index{26}, 1, bytes).ok());
  CHECK(again.append(c.at, bytes, c.at).ok());
  CHECK(again.state().last == whole.at[26]);
}

TEST_CASE("recovery: each replica of a restored group is the member of the checkpoint", "[store]") {
  Stored whole;
  const core::Checkpoint c = whole.checkpoint(25);
  const auto begin = [&c](ReplicaId self, bool was_member, store::MemStore& s) {
    REQUIRE(store::take_place(s, kLogId, self, was_member, c).ok());
    std::vector<std::byte> memory(core::log_memory_bytes(kRing));
    store::Memory m;
    m.log = memory;
    m.ring_bytes = kRing;
    m.payload_bytes_max = kPayloadMax;
    return store::recover(s, m, kLogId, was_member, &c);
  };
  for (const auto& [self, incarnation] :
       {std::pair{0, core::kFirstIncarnation}, std::pair{4, 9U}}) {
    store::MemDisk disk;
    store::MemStore s(disk);
    const auto r = begin(ReplicaId(self), false, s);
    REQUIRE(r.ok());
    CHECK(r.value().start.kind == core::StartKind::kSurvived);
    CHECK(r.value().incarnation == incarnation);
    CHECK(r.value().start.promise[core::kPromisedView] == 768);
    CHECK(r.value().replay_to == Index{25});
    CHECK(s.state().first == c.at);
  }
  store::MemDisk disk;
  store::MemStore s(disk);
  // A replica that is not in the list stays new; one that was a member since then has lost its
  // store.
  CHECK(begin(ReplicaId{3}, false, s).value().start.kind == core::StartKind::kNew);
  CHECK(begin(ReplicaId{0}, true, s).value().start.kind == core::StartKind::kLost);
  // An existing store stays.
  Stored there(15);
  REQUIRE(store::take_place(there.s, kLogId, ReplicaId{0}, false, c).ok());
  CHECK(there.s.state().identity == store::Identity{kLogId, 7});
  CHECK(there.s.state().last == there.at[15]);
}

TEST_CASE("recovery: an entry that was never committed gives way to the checkpoint", "[store]") {
  Stored d;
  core::Checkpoint c = d.checkpoint(25);
  c.at.last.view = View{300};  // the entry that was committed there
  const auto r = d.recover(&c);
  REQUIRE(r.ok());
  CHECK(r.value().starts_again);
  CHECK(r.value().start.promise[core::kPromisedView] == 768);
  CHECK(d.s.state().last == c.at);
}

TEST_CASE("recovery: a voter without a server need not reach back to the checkpoint",
          "[store][VOTES-1]") {
  Stored d;
  REQUIRE(d.s.drop_below(Index{11}).ok());
  core::Checkpoint old = d.checkpoint(9);
  SECTION("its memory exists") {
    const auto r = d.recover(&old, true, 15);
    REQUIRE(r.ok());
    CHECK(r.value().start.kind == core::StartKind::kSurvived);
    CHECK(r.value().start.promise[core::kPromisedView] == 512);
    CHECK(r.value().replay_to == Index{15});
  }
  SECTION("the checkpoint has a newer list of members") {
    old.config.at.index = Index{10};
    const auto r = d.recover(&old, true);
    REQUIRE(r.ok());
    CHECK(r.value().start.kind == core::StartKind::kSurvived);
    CHECK(r.value().replay_to == Index{20});
    CHECK(d.saved_config()->members == d.members);
  }
  SECTION("another list may be between the two") {
    CHECK(d.recover(&old, true).error().code == Code::kGone);
    CHECK(d.recover(nullptr, true).error().code == Code::kGone);
    CHECK(d.s.state().last == d.at[30]);  // the store stays
  }
}

TEST_CASE("recovery: a checkpoint older than the store, or of another log, changes nothing",
          "[store]") {
  Stored d;
  core::Checkpoint foreign = d.checkpoint(12);
  foreign.at.last.view = View{300};
  CHECK(d.recover(&foreign).error().code == Code::kBadArgument);
  REQUIRE(d.s.drop_below(Index{11}).ok());
  const core::Checkpoint old = d.checkpoint(9);
  CHECK(d.recover(&old).error().code == Code::kGone);
  CHECK(d.recover(nullptr).error().code == Code::kGone);
  const core::Checkpoint c = d.checkpoint(10);
  const auto r = d.recover(&c);
  REQUIRE(r.ok());
  CHECK(r.value().start.kind == core::StartKind::kSurvived);
  CHECK(d.s.state().last == d.at[30]);
}
