// SPDX-License-Identifier: Apache-2.0
// GOAL    The ring returns the records that were put in, in order, for all sizes and wrap-arounds.
// METHOD  Comparison with a queue of strings, with random sizes; two threads for the memory order.
// CHECKS  SEQ-S1..S3, exact fill, fillers, reserve without commit.
#include "dmt/sequence/ring.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace crane;

namespace {

struct Fixture {
  explicit Fixture(std::uint64_t capacity)
      : data(capacity), ring((set(capacity), layout), data.data()) {}
  void set(std::uint64_t capacity) {
    layout.data_offset = 0;
    layout.capacity = capacity;
  }
  bool put(const std::string& bytes) {
    const auto room = ring.reserve(static_cast<std::uint32_t>(bytes.size()));
    if (room.data() == nullptr) return false;
    if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
    ring.commit(static_cast<std::uint32_t>(bytes.size()));
    return true;
  }
  std::string take() {
    const auto record = ring.front();
    std::string result(reinterpret_cast<const char*>(record.data()), record.size());
    ring.pop();
    return result;
  }
  RingLayout layout{};
  std::vector<std::byte> data;
  Ring ring;
};

std::uint64_t seed_of_run() {
  const char* given = std::getenv("CRANE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

}  // namespace

TEST_CASE("ring: first in, first out", "[ring]") {
  Fixture f(256);
  CHECK(f.ring.empty());
  CHECK(f.ring.front().empty());
  CHECK(f.put("one"));
  CHECK(f.put("two"));
  CHECK_FALSE(f.ring.empty());
  CHECK(f.take() == "one");
  CHECK(f.take() == "two");
  CHECK(f.ring.empty());
}

TEST_CASE("ring: nothing is visible before commit, and commit may be for fewer bytes", "[ring]") {
  Fixture f(256);
  const auto room = f.ring.reserve(100);
  REQUIRE(room.size() == 100);
  CHECK(f.ring.front().empty());
  std::memcpy(room.data(), "abc", 3);
  f.ring.commit(3);
  CHECK(f.take() == "abc");
}

TEST_CASE("ring: it fills to the last byte", "[ring]") {
  Fixture f(128);
  CHECK(f.ring.writable() == 120);
  CHECK(f.put(std::string(120, 'x')));
  CHECK(f.ring.writable() == 0);
  CHECK_FALSE(f.put("y"));
  CHECK(f.take() == std::string(120, 'x'));
  CHECK(f.ring.writable() == 120);
  for (int i = 0; i < 8; ++i) CHECK(f.put("12345678"));
  CHECK_FALSE(f.put("9"));
}

TEST_CASE("ring: a record that would cross the end goes to the start", "[ring]") {
  Fixture f(128);
  CHECK(f.put(std::string(72, 'a')));  // 80 bytes
  CHECK(f.take().size() == 72);
  CHECK(f.put(std::string(56, 'b')));  // 48 are left at the end
  CHECK(f.layout.write_position.load() == 128 + 64);
  const auto record = f.ring.front();
  CHECK(record.data() == f.data.data() + Ring::kRecordHeader);
  CHECK(f.take() == std::string(56, 'b'));
}

TEST_CASE("ring: an abandoned reserve at the end leaves no record", "[ring]") {
  Fixture f(128);
  CHECK(f.put(std::string(72, 'a')));
  CHECK(f.take().size() == 72);
  CHECK(f.ring.reserve(56).size() == 56);  // writes a filler, then is not committed
  CHECK(f.ring.front().empty());
  CHECK(f.ring.empty());
  CHECK(f.put("next"));
  CHECK(f.take() == "next");
}

TEST_CASE("ring: reserve() returns as many bytes as writable() reports", "[ring][random]") {
  const std::uint64_t seed = seed_of_run();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  Fixture f(512);
  for (int i = 0; i < 20'000; ++i) {
    const auto room = static_cast<std::uint32_t>(f.ring.writable());
    if (room > 0) {
      // A reserve that is not committed changes at most a filler.
      Fixture copy(512);
      copy.layout.write_position.store(f.layout.write_position.load());
      copy.layout.read_position.store(f.layout.read_position.load());
      REQUIRE(copy.ring.reserve(room).size() == room);
      REQUIRE(copy.ring.reserve(room + 8).empty());
    }
    if (random() % 2 == 0) {
      f.put(std::string(1 + random() % 200, 'x'));
    } else if (!f.ring.front().empty()) {
      f.ring.pop();
    }
  }
}

TEST_CASE("ring: random sizes have the same results as a queue", "[ring][random]") {
  const std::uint64_t seed = seed_of_run();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const std::uint64_t capacity : {64u, 256u, 4096u}) {
    Fixture f(capacity);
    std::deque<std::string> model;
    int refused = 0;
    for (int i = 0; i < 50'000; ++i) {
      if (random() % 5 < 3) {
        std::string bytes(1 + random() % (capacity / 2 - Ring::kRecordHeader), '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        if (f.put(bytes)) {
          model.push_back(bytes);
        } else {
          ++refused;
          REQUIRE_FALSE(model.empty());  // an empty ring accepts any record of up to half of it
        }
      } else if (!model.empty()) {
        REQUIRE(f.take() == model.front());
        model.pop_front();
      }
      const std::uint64_t used = f.layout.write_position.load() - f.layout.read_position.load();
      REQUIRE(used <= capacity);  // SEQ-S1
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("ring: positions may exceed 32 bits", "[ring]") {
  Fixture f(256);
  const std::uint64_t far = (1ull << 40) - 64;
  f.layout.write_position.store(far);
  f.layout.read_position.store(far);
  for (int i = 0; i < 100; ++i) {
    CHECK(f.put(std::string(static_cast<std::size_t>(1 + i % 90), 'z')));
    CHECK(f.take().size() == static_cast<std::size_t>(1 + i % 90));
  }
}

TEST_CASE("ring: one writer and one reader work concurrently", "[ring][threads]") {
  Fixture f(1024);
  constexpr std::uint32_t kRecords = 50'000;
  std::thread writer([&f] {
    Ring ring(f.layout, f.data.data());
    for (std::uint32_t i = 0; i < kRecords;) {
      const std::uint32_t size = 4 + i * 37 % 300;
      const auto room = ring.reserve(size);
      if (room.empty()) {
        std::this_thread::yield();
        continue;
      }
      std::memset(room.data(), static_cast<int>(i & 0xff), size);
      std::memcpy(room.data(), &i, sizeof i);
      ring.commit(size);
      ++i;
    }
  });
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < kRecords;) {
    const auto record = f.ring.front();
    if (record.empty()) {
      std::this_thread::yield();
      continue;
    }
    std::uint32_t number = 0;
    std::memcpy(&number, record.data(), sizeof number);
    const auto fill = static_cast<std::byte>(i & 0xff);
    if (number != i || record.size() != 4 + i * 37 % 300) ++wrong;
    for (std::size_t b = sizeof number; b < record.size(); ++b) wrong += record[b] != fill ? 1 : 0;
    f.ring.pop();
    ++i;
  }
  writer.join();
  CHECK(wrong == 0);
}

TEST_CASE("ring: records read ahead stay until they are released, also across the end",
          "[ring][SEQ-S3]") {
  Fixture f(256);
  for (int round = 0; round < 50; ++round) {
    std::uint64_t position = f.ring.read_position();
    REQUIRE(f.put("first" + std::to_string(round)));
    REQUIRE(f.put(std::string(static_cast<std::size_t>(round), 'x')));
    const auto read = [&] {
      const auto record = f.ring.next(position);
      return std::string(reinterpret_cast<const char*>(record.data()), record.size());
    };
    const std::uint64_t free = f.ring.writable();
    CHECK(read() == "first" + std::to_string(round));
    CHECK(read() == std::string(static_cast<std::size_t>(round), 'x'));
    CHECK(read().empty());
    CHECK(f.ring.writable() == free);
    CHECK_FALSE(f.ring.empty());
    f.ring.release(position);
    CHECK(f.ring.empty());
    CHECK(f.ring.front().empty());
  }
}

TEST_CASE("ring: once all was read, writing restarts at the beginning while its memory is cached",
          "[ring][SEQ-S1]") {
  Fixture f(16U << 20U);
  const std::string text(50'000, 'r');
  std::uint64_t furthest = 0;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(f.put(text + std::to_string(i)));
    const auto* at = f.ring.front().data();
    furthest = std::max(furthest, static_cast<std::uint64_t>(at - f.data.data()));
    REQUIRE(f.take() == text + std::to_string(i));
  }
  CHECK(furthest < 3U << 20U);
  // Unread records are not overwritten.
  REQUIRE(f.put("oldest"));
  std::size_t count = 0;
  while (f.put(text)) ++count;
  CHECK(count > 100);
  CHECK(f.take() == "oldest");
  for (std::size_t i = 0; i < count; ++i) REQUIRE(f.take() == text);
  CHECK(f.ring.empty());
  // A record may also be larger than the used part.
  const std::string large(9U << 20U, 'l');
  REQUIRE(f.put(large));
  CHECK(f.take() == large);
}
