// SPDX-License-Identifier: Apache-2.0
#include "consensus/core/log.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace {

using namespace crane;
using namespace crane::consensus::core;

constexpr std::uint64_t kRing = 1024;
constexpr std::uint64_t kLogId = 77;

struct Fixture {
  std::vector<std::byte> memory = std::vector<std::byte>(log_memory_bytes(kRing));
  LogRing ring{memory, kRing, kLogId, 128};
  Cursor end;

  EntryHeader append(std::uint64_t view, std::size_t bytes, std::byte fill = std::byte{1}) {
    EntryHeader h;
    h.view = view;
    h.type = 3;
    h.grant = 5;
    h.stamp_ns = 9;
    const std::vector<std::byte> payload(bytes, fill);
    const Cursor at = end;
    ring.append(end, h, payload);
    EntryHeader out;
    REQUIRE(ring.valid_at(at, out));
    return out;
  }
};

}  // namespace

TEST_CASE("log: an entry comes back as it was written", "[log]") {
  Fixture f;
  const EntryHeader h = f.append(1, 50, std::byte{0xab});
  CHECK(h.index == 1);
  CHECK(h.view == 1);
  CHECK(h.prev_view == 0);
  CHECK(h.type == 3);
  CHECK(h.grant == 5);
  CHECK(h.stamp_ns == 9);
  const auto payload = f.ring.payload(h);
  REQUIRE(payload.size() == 50);
  CHECK(payload[49] == std::byte{0xab});
  CHECK(f.end.pos == entry_bytes(50));
  CHECK(f.end.pos % 8 == 0);
}

TEST_CASE("log: any changed bit ends the log there", "[log]") {
  Fixture f;
  f.append(1, 20);
  const std::uint64_t bits = (kHeaderBytes + 20) * 8;
  for (std::uint64_t bit = 0; bit < bits; ++bit) {
    f.memory[bit / 8] ^= std::byte(1U << (bit % 8));
    EntryHeader h;
    INFO("bit " << bit);
    CHECK_FALSE(f.ring.valid_at({}, h));
    f.memory[bit / 8] ^= std::byte(1U << (bit % 8));
  }
}

TEST_CASE("log: entries and payloads may straddle the end of the ring, in every way", "[log]") {
  for (std::size_t bytes = 0; bytes <= 128; bytes += 4) {
    Fixture f;
    for (int i = 0; i < 60; ++i) {
      const auto fill = std::byte(i);
      const EntryHeader h = f.append(1, bytes, fill);
      const auto payload = f.ring.payload(h);
      REQUIRE(payload.size() == bytes);
      CHECK((bytes == 0 || (payload[0] == fill && payload[bytes - 1] == fill)));
    }
    CHECK(f.end.pos > 2 * kRing);
  }
}

TEST_CASE("log: bytes of an earlier lap are not accepted as entries", "[log]") {
  Fixture f;
  for (int i = 0; i < 40; ++i)
    f.append(1, 0);  // 72 bytes each: the entries of two laps are not
                     // aligned
  EntryHeader h;
  CHECK_FALSE(f.ring.valid_at(f.end, h));
  // Even if they are aligned, the absolute position differs by a lap.
  Fixture g;
  for (int i = 0; i < 8; ++i) g.append(1, 56);
  CHECK(g.end.pos == kRing);
  CHECK(g.ring.header_at(0).index == 1);
  CHECK_FALSE(g.ring.valid_at(g.end, h));
}

TEST_CASE("log: overwriting one entry truncates the later ones (U1)", "[log]") {
  Fixture f;
  f.append(1, 8);
  const Cursor fork = f.end;
  f.append(1, 8);
  const Cursor old_third = f.end;
  f.append(1, 8);
  Cursor at = fork;
  EntryHeader h;
  h.view = 2;
  f.ring.append(at, h, std::vector<std::byte>(8));
  CHECK(at.pos == old_third.pos);
  EntryHeader found;
  CHECK(f.ring.valid_at(fork, found));
  CHECK(found.view == 2);
  // The old third entry still follows it, and is complete, but names another predecessor.
  CHECK_FALSE(f.ring.valid_at(at, found));
  CHECK(f.ring.valid_at(old_third, found));
}

TEST_CASE("log: a client's bytes shaped as an entry do not make one (U11)", "[log]") {
  Fixture f;
  Fixture forger;  // knows everything but the log id
  LogRing other(forger.memory, kRing, kLogId + 1, 128);
  Cursor at;
  EntryHeader h;
  h.view = 1;
  other.append(at, h, std::vector<std::byte>(16));
  std::memcpy(f.memory.data(), forger.memory.data(), at.pos);
  EntryHeader found;
  CHECK_FALSE(f.ring.valid_at({}, found));
}

TEST_CASE("log: the commit cell counts only if whole, and only for its view (C3)", "[log]") {
  Fixture f;
  CHECK(f.ring.commit_cell(View{3}) == Index{0});
  f.ring.set_commit_cell(View{3}, Index{12});
  CHECK(f.ring.commit_cell(View{3}) == Index{12});
  CHECK(f.ring.commit_cell(View{4}) == Index{0});
  f.memory[f.ring.commit_cell_offset() + 16] ^= std::byte{1};
  CHECK(f.ring.commit_cell(View{3}) == Index{0});
}

TEST_CASE("log: entries read over the network are checked like those in the ring", "[log]") {
  Fixture f;
  const EntryHeader h = f.append(1, 30);
  const std::span<const std::byte> bytes{f.memory.data(), entry_bytes(30)};
  EntryHeader found;
  CHECK(f.ring.valid_bytes({}, bytes, found));
  CHECK(found.crc == h.crc);
  CHECK_FALSE(f.ring.valid_bytes({}, bytes.first(bytes.size() - 8), found));
  CHECK_FALSE(f.ring.valid_bytes({8, {}}, bytes, found));
}
