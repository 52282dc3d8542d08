// SPDX-License-Identifier: Apache-2.0
// GOAL    The log's ring arithmetic holds for every sequence of sizes, views, laps and damages.
// METHOD  RapidCheck draws logs; a list of the appended entries is the model.
// CHECKS  CORE-L1, CORE-L2; which entries are valid, where the log ends, what survives overwriting
//         and tearing.
// REPLAY  RC_PARAMS="reproduce=..." as RapidCheck prints it.

#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "consensus/core/log.h"

namespace {

using namespace crane;
using namespace crane::consensus::core;

constexpr std::uint64_t kLogId = 0xfeed;
constexpr std::uint32_t kPayloadMax = 180;

struct Kept {
  Cursor at;  // before it
  EntryHeader header;
  std::vector<std::byte> payload;
  std::uint64_t end() const { return header.pos + entry_bytes(header.length); }
};

struct Log {
  explicit Log(std::uint64_t bytes)
      : memory(log_memory_bytes(bytes)), ring(memory, bytes, kLogId, kPayloadMax) {}

  void append(std::uint64_t view, const std::vector<std::byte>& payload) {
    Kept k;
    k.at = end;
    k.payload = payload;
    EntryHeader h;
    h.view = view;
    ring.append(end, h, payload);
    k.header = ring.header_at(k.at.pos);
    entries.push_back(k);
  }
  // Whole in the ring: no later byte has overwritten it.
  bool kept(const Kept& k) const { return k.at.pos + ring.ring_bytes() >= end.pos; }

  std::vector<std::byte> memory;
  LogRing ring;
  Cursor end;
  std::vector<Kept> entries;
};

std::vector<std::byte> some_payload(std::size_t max = kPayloadMax) {
  const auto size = *rc::gen::inRange<std::size_t>(0, max + 1);
  const auto fill = *rc::gen::arbitrary<std::uint8_t>();
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(fill + i * 7);
  return bytes;
}

// Some laps of entries; the view grows sometimes.
Log some_log() {
  Log log(std::uint64_t{1024} << *rc::gen::inRange(0, 3));
  std::uint64_t view = 1;
  const int count = *rc::gen::inRange(1, 120);
  for (int i = 0; i < count; ++i) {
    view += *rc::gen::inRange(0, 8) == 0 ? 1U : 0U;
    log.append(view, some_payload());
  }
  return log;
}

struct Scanned {
  std::vector<EntryHeader> headers;
  Cursor end;
};

Scanned scan(const LogRing& ring, Cursor from) {
  Scanned s;
  s.end = from;
  EntryHeader h;
  while (ring.valid_at(s.end, h)) {
    RC_ASSERT(h.pos == s.end.pos);                         // CORE-L1
    RC_ASSERT(h.index == value(s.end.last.index) + 1);     // CORE-L1
    RC_ASSERT(h.view >= value(s.end.last.view));           // CORE-L2
    RC_ASSERT(s.end.pos - from.pos <= ring.ring_bytes());  // never more than a lap
    s.headers.push_back(h);
    s.end = LogRing::after(h);
  }
  return s;
}

// The oldest whole entry, or the log's end.
std::size_t oldest(const Log& log) {
  std::size_t i = 0;
  while (i < log.entries.size() && !log.kept(log.entries[i])) ++i;
  return i;
}

void property(const char* what, const std::function<void()>& body) {
  INFO(what);
  CHECK(rc::check(what, body));
}

}  // namespace

TEST_CASE("log: a scan from every entry finds all later ones unchanged", "[log][rc]") {
  property("scan returns the model", [] {
    Log log = some_log();
    const std::size_t first = oldest(log);
    RC_PRE(first < log.entries.size());
    const std::size_t from = *rc::gen::inRange(first, log.entries.size());
    const Scanned s = scan(log.ring, log.entries[from].at);
    RC_ASSERT(s.end == log.end);
    RC_ASSERT(s.headers.size() == log.entries.size() - from);
    for (std::size_t i = from; i < log.entries.size(); ++i) {
      const auto bytes = log.ring.payload(s.headers[i - from]);
      RC_ASSERT(std::equal(bytes.begin(), bytes.end(), log.entries[i].payload.begin(),
                           log.entries[i].payload.end()));
    }
  });
}

TEST_CASE("log: an entry is valid exactly until a later byte overwrites it", "[log][rc]") {
  property("valid iff within the last lap", [] {
    const Log log = some_log();
    for (const Kept& k : log.entries) {
      EntryHeader h;
      // An entry overwritten only by padding or equal bytes would still be the same.
      if (log.kept(k)) RC_ASSERT(log.ring.valid_at(k.at, h));
      if (k.at.pos + kHeaderBytes + log.ring.ring_bytes() <= log.end.pos) {
        RC_ASSERT(!log.ring.valid_at(k.at, h));
      }
    }
  });
}

TEST_CASE("log: a newer view written over an entry ends the old log there (U1)", "[log][rc]") {
  property("overwriting truncates", [] {
    Log log = some_log();
    const std::size_t first = oldest(log);
    RC_PRE(first < log.entries.size());
    const std::size_t fork = *rc::gen::inRange(first, log.entries.size());
    const Cursor from = log.entries[first].at;
    Cursor at = log.entries[fork].at;
    RC_PRE(at.pos + entry_bytes(kPayloadMax) <= from.pos + log.ring.ring_bytes());
    EntryHeader h;
    h.view = log.entries.back().header.view + 1;
    log.ring.append(at, h, some_payload());
    const Scanned s = scan(log.ring, from);
    RC_ASSERT(s.end == at);
    RC_ASSERT(s.headers.size() == fork - first + 1);
  });
}

TEST_CASE("log: an entry is valid at its own position only, not a lap later (U11)", "[log][rc]") {
  property("absolute positions", [] {
    const Log log = some_log();
    Cursor later = log.entries.back().at;
    later.pos += log.ring.ring_bytes() * *rc::gen::inRange<std::uint64_t>(1, 1000);
    EntryHeader h;
    RC_ASSERT(!log.ring.valid_at(later, h));
  });
}

TEST_CASE("log: damaged memory contains a prefix, never another entry", "[log][rc]") {
  property("any bytes changed", [] {
    Log log = some_log();
    const std::size_t first = oldest(log);
    RC_PRE(first < log.entries.size());
    const auto holes = *rc::gen::inRange(1, 5);
    for (int i = 0; i < holes; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, log.ring.ring_bytes());
      const auto noise = *rc::gen::container<std::vector<std::uint8_t>>(
          *rc::gen::inRange<std::size_t>(1, 40), rc::gen::arbitrary<std::uint8_t>());
      for (std::size_t k = 0; k < noise.size(); ++k) {
        log.memory[(at + k) & (log.ring.ring_bytes() - 1)] = std::byte(noise[k]);
      }
    }
    const Scanned s = scan(log.ring, log.entries[first].at);
    RC_ASSERT(s.headers.size() <= log.entries.size() - first);
    for (std::size_t i = 0; i < s.headers.size(); ++i) {
      const Kept& k = log.entries[first + i];
      RC_ASSERT(std::memcmp(&s.headers[i], &k.header, kHeaderBytes) == 0);
      const auto bytes = log.ring.payload(s.headers[i]);
      RC_ASSERT(std::equal(bytes.begin(), bytes.end(), k.payload.begin(), k.payload.end()));
    }
  });
}

TEST_CASE("log: a copy torn anywhere, over any old lap, contains a prefix of the writer's log",
          "[log][rc]") {
  property("torn copies", [] {
    Log writer = some_log();
    Log reader(writer.ring.ring_bytes());
    const auto before = *rc::gen::inRange<std::size_t>(0, writer.entries.size());
    for (std::size_t i = 0; i < before; ++i) {  // equal up to here, then only some words
      reader.append(writer.entries[i].header.view, writer.entries[i].payload);
    }
    const std::size_t first = oldest(writer);
    RC_PRE(first < writer.entries.size() && before >= first);
    const auto skip = *rc::gen::inRange(1, 64);
    const auto stop = *rc::gen::inRange<std::uint64_t>(0, writer.ring.ring_bytes() / 8 + 1);
    for (std::uint64_t w = 0; w < stop; ++w) {
      if (*rc::gen::inRange(0, 64) < skip) continue;
      const std::uint64_t at = writer.ring.offset(reader.end.pos + w * 8);
      std::memcpy(reader.memory.data() + at, writer.memory.data() + at, 8);
    }
    const Scanned s = scan(reader.ring, writer.entries[first].at);
    RC_ASSERT(s.headers.size() <= writer.entries.size() - first);
    for (std::size_t i = 0; i < s.headers.size(); ++i) {
      RC_ASSERT(s.headers[i].crc == writer.entries[first + i].header.crc);
    }
  });
}

TEST_CASE("log: random memory contains no log at any position", "[log][rc]") {
  property("random bytes", [] {
    Log log(1024);
    for (auto& b : log.memory) b = std::byte(*rc::gen::arbitrary<std::uint8_t>());
    Cursor at;
    at.pos = *rc::gen::arbitrary<std::uint64_t>() & ~std::uint64_t{7};
    at.last = {View{*rc::gen::arbitrary<std::uint64_t>()},
               Index{*rc::gen::arbitrary<std::uint64_t>()}};
    EntryHeader h;
    RC_ASSERT(!log.ring.valid_at(at, h));
    RC_ASSERT(log.ring.commit_cell(at.last.view) == Index{0});
  });
}

TEST_CASE("log: bytes read from a peer are checked as those in the ring", "[log][rc]") {
  property("valid_bytes is valid_at", [] {
    const Log log = some_log();
    const Kept& k = log.entries.back();
    std::vector<std::byte> bytes(entry_bytes(k.header.length));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = log.memory[log.ring.offset(k.at.pos + i)];
    }
    EntryHeader h;
    RC_ASSERT(log.ring.valid_bytes(k.at, bytes, h));
    RC_ASSERT(h.crc == k.header.crc);
    const auto less = *rc::gen::inRange<std::size_t>(0, bytes.size());
    RC_ASSERT(!log.ring.valid_bytes(k.at, std::span(bytes).first(less), h));
    const auto at = *rc::gen::inRange<std::size_t>(0, kHeaderBytes + k.header.length);
    bytes[at] ^= std::byte(1U << *rc::gen::inRange(0, 8));
    RC_ASSERT(!log.ring.valid_bytes(k.at, bytes, h));
  });
}
