// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/scheduler_link.h"

#include <catch2/catch.hpp>
#include <vector>

#include "dmt/base/crc.h"
#include "dmt/scheduler.h"
#include "dmt/sequence/entry.h"
#include "dmt/tuning.h"
#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

struct Fixture : test::SegmentMemory, SchedulerLink::Memory {
  virtual ~Fixture() = default;
  void commit(std::uint64_t index, EntryType type, std::span<const std::byte> body) {
    consensus::EntryView entry;
    entry.at = {make_view(1, ReplicaId{0}), Index{index}};
    entry.type = static_cast<std::uint8_t>(type);
    entry.stamp_ns = index;
    entry.payload = body;
    scheduler_link.committed(entry);
  }

  bool has_memory = true;
  bool make_room(std::size_t) noexcept override { return has_memory; }
  SchedulerLink scheduler_link{w, *this};
};

}  // namespace

TEST_CASE("Z1: entries that do not fit into the sequence wait and follow in order",
          "[scheduler_link]") {
  Fixture f;
  const std::vector<std::byte> body(kDataBytesMax);
  std::uint64_t index = 0;
  while (!f.scheduler_link.spooling()) f.commit(++index, EntryType::kBubble, body);
  for (int i = 0; i < 5; ++i) f.commit(++index, EntryType::kBubble, body);
  REQUIRE_FALSE(f.scheduler_link.pump());
  REQUIRE(f.scheduler_link.waiting_bytes() > dmt::kSequenceBytes);

  Ring reader(f.w.header.sequence, reinterpret_cast<std::byte*>(&f.w));
  for (std::uint64_t expected = 1; expected <= index; ++expected) {
    if (reader.empty()) REQUIRE(f.scheduler_link.pump());
    const auto record = reader.front();
    SequenceHeader header;
    REQUIRE(record.size() == sizeof header + body.size());
    std::memcpy(&header, record.data(), sizeof header);
    REQUIRE(value(header.viewstamp.index) == expected);
    const std::uint32_t crc = header.crc;
    header.crc = 0;
    REQUIRE(crc32c(record.data() + sizeof header, body.size(), crc32c(&header, sizeof header)) ==
            crc);
    reader.pop();
  }
  REQUIRE_FALSE(f.scheduler_link.spooling());
  REQUIRE(f.scheduler_link.spooled_bytes() == 0);
}

TEST_CASE("ROOM-3: an entry waits while the segment has no memory for it", "[scheduler_link]") {
  Fixture f;
  const std::vector<std::byte> body(100);
  f.commit(1, EntryType::kBubble, body);
  CHECK_FALSE(f.scheduler_link.spooling());
  f.has_memory = false;
  f.commit(2, EntryType::kBubble, body);
  CHECK(f.scheduler_link.spooling());
  CHECK_FALSE(f.scheduler_link.pump());
  f.has_memory = true;
  CHECK(f.scheduler_link.pump());
  CHECK_FALSE(f.scheduler_link.spooling());
}

TEST_CASE("Z2: the node admits only after it has read the server's output", "[scheduler_link]") {
  Fixture f;
  StartBody start{};
  f.commit(1, EntryType::kStart, std::as_bytes(std::span<const StartBody, 1>{&start, 1}));
  const OutputHeader header{OutputType::kConsumed, {}, 1, 2, 3};
  const auto room = dmt::reserve_output(f.w, sizeof header);
  std::memcpy(room.data(), &header, sizeof header);
  dmt::commit_output(f.w, sizeof header);
  REQUIRE_FALSE(f.scheduler_link.admit());
  int seen = 0;
  REQUIRE(f.scheduler_link.drain(
              [&](const OutputHeader& h, std::span<const std::byte> bytes) {
                REQUIRE(h.type == OutputType::kConsumed);
                REQUIRE(bytes.empty());
                ++seen;
                return true;
              },
              [] {}) == 1);
  REQUIRE(seen == 1);
  REQUIRE(f.scheduler_link.admit());
  REQUIRE(f.w.scheduler.applied_index.load() == 1);
}

TEST_CASE("all of a ring may be left out if it has no unread record, otherwise nothing",
          "[scheduler_link]") {
  Fixture f;
  const auto whole = [&](const RingLayout& ring, const checkpoint::FileRange& range) {
    return range.from == ring.data_offset && range.to == ring.data_offset + ring.capacity;
  };
  const RingLayout &sequence = f.w.header.sequence, &output = f.w.header.output;
  f.commit(1, EntryType::kBubble, {});
  auto ranges = f.scheduler_link.read_bytes();
  REQUIRE(ranges.size() == 1);
  CHECK(whole(output, ranges[0]));
  Ring(f.w.header.sequence, reinterpret_cast<std::byte*>(&f.w)).pop();
  ranges = f.scheduler_link.read_bytes();
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].to <= ranges[1].from);
  CHECK((whole(sequence, ranges[0]) || whole(sequence, ranges[1])));
  CHECK((whole(output, ranges[0]) || whole(output, ranges[1])));
}
