// SPDX-License-Identifier: Apache-2.0
// GOAL    Entries reach the server in log order, and none reaches it while the log is held.
// METHOD  A LogIntake whose log the test holds and releases; the test is consensus and the server.
// CHECKS  INTAKE-1, INTAKE-2; counts, positions, the first START; payloads of held entries.
#include "proxy/host/log_intake.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::node;

namespace {

struct World : LogIntake::Owner {
  bool holds = false;
  std::uint64_t hold_at = 0;  // when this entry is delivered, the log is held again
  std::vector<std::uint64_t> delivered, committed_indices;
  std::vector<std::string> payloads;
  std::vector<bool> were_held;
  LogIntake intake{*this};

  virtual ~World() = default;
  bool holds_log() const override { return holds; }
  void entry_held(const consensus::EntryView& e) override {
    committed_indices.push_back(value(e.at.index));
  }
  void deliver(const consensus::EntryView& e, bool was_held) override {
    delivered.push_back(value(e.at.index));
    were_held.push_back(was_held);
    const auto* bytes = reinterpret_cast<const char*>(e.payload.data());
    payloads.emplace_back(bytes, e.payload.size());
    if (value(e.at.index) == hold_at) holds = true;
  }
  void commit(std::uint64_t index, EntryType type, std::string payload = "") {
    consensus::EntryView e{};
    e.at = {View{1}, Index{index}};
    e.type = static_cast<std::uint8_t>(type);
    e.payload = std::as_bytes(std::span(payload));
    e.end_pos = index * 100;
    e.stamp_ns = index * 7;
    intake.committed(e);
  }
};

using Indexes = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE_METHOD(World, "entries are delivered as they are committed", "[intake]") {
  commit(1, EntryType::kStart);
  commit(2, EntryType::kData, "abc");
  CHECK(delivered == Indexes{1, 2});
  CHECK(payloads.back() == "abc");
  CHECK(were_held == std::vector<bool>{false, false});
  CHECK(intake.last() == Index{2});
  CHECK(intake.first_start() == Index{1});
  CHECK(intake.delivered().at.index == Index{2});
  CHECK(intake.delivered().end == 200);
  CHECK(intake.delivered().stamp_ns == 14);
  CHECK(intake.counts()[static_cast<std::size_t>(EntryType::kData)] == 1);
}

TEST_CASE_METHOD(World, "a gap is detected before an entry is taken", "[intake][INTAKE-1]") {
  commit(1, EntryType::kStart);
  CHECK(intake.is_next(Index{2}));
  CHECK_FALSE(intake.is_next(Index{3}));
  CHECK_FALSE(intake.is_next(Index{1}));
}

TEST_CASE_METHOD(World, "entries of consensus only advance the position", "[intake]") {
  consensus::EntryView e{};
  e.at = {View{1}, Index{1}};
  e.type = kConsensusTypes;
  e.end_pos = 64;
  intake.committed(e);
  CHECK(delivered.empty());
  CHECK(intake.last() == Index{1});
  CHECK(intake.end() == 64);
  CHECK(intake.last_for_server() < intake.last());  // that entry is not for the server
}

TEST_CASE_METHOD(World, "the entries of a held log are only reported, then released in order",
                 "[intake][INTAKE-2]") {
  commit(1, EntryType::kStart);
  holds = true;
  commit(2, EntryType::kData, "two");
  commit(3, EntryType::kTime);
  commit(4, EntryType::kData, "four");
  CHECK(delivered == Indexes{1});
  CHECK(committed_indices == Indexes{2, 3, 4});
  CHECK(intake.delivered().at.index == Index{1});
  intake.release();  // still held
  CHECK(delivered == Indexes{1});

  Indexes seen;
  const auto note = [&](const consensus::EntryView& e) { seen.push_back(value(e.at.index)); };
  CHECK(intake.slide(note) == Index{2});
  CHECK(seen == Indexes{2});
  CHECK(delivered == Indexes{1, 2});
  CHECK(payloads.back() == "two");

  holds = false;
  intake.release();
  CHECK(delivered == Indexes{1, 2, 3, 4});
  CHECK(payloads.back() == "four");
  CHECK(were_held == std::vector<bool>{false, true, true, true});
  CHECK(intake.slide(note) == Index{0});
}

TEST_CASE_METHOD(World, "a released entry may hold the log again", "[intake][INTAKE-2]") {
  holds = true;
  for (std::uint64_t i = 1; i <= 4; ++i) commit(i, EntryType::kData);
  hold_at = 2;
  holds = false;
  intake.release();
  CHECK(delivered == Indexes{1, 2});
  CHECK_FALSE(intake.empty());
}

TEST_CASE_METHOD(World, "each type of entry is counted separately", "[intake]") {
  for (std::size_t type = 1; type < kEntryTypeSlots; ++type) {
    commit(type, static_cast<EntryType>(type));
  }
  for (std::size_t type = 1; type < kEntryTypeSlots; ++type) CHECK(intake.counts()[type] == 1);
  CHECK(intake.counts()[0] == 0);
  CHECK(intake.inputs_of_clients() ==
        7);  // connect, data, shutdown, reset, signal, connected, resolved
}

TEST_CASE_METHOD(World, "after a checkpoint the next entry is the one that follows it",
                 "[intake]") {
  EntryCounts counts{};
  counts[static_cast<std::size_t>(EntryType::kConnect)] = 3;
  counts[static_cast<std::size_t>(EntryType::kTime)] = 9;
  intake.begin_behind(Index{40}, Index{1}, counts);
  CHECK(intake.is_next(Index{41}));
  CHECK(intake.first_start() == Index{1});
  CHECK(intake.inputs_of_clients() == 3);
}
