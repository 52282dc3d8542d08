// SPDX-License-Identifier: Apache-2.0
#include "dmt/inodes.h"

#include <catch2/catch.hpp>

#include "tests/unit/dmt/world.h"

namespace crane::dmt {
namespace {

TEST_CASE("a file keeps its number, and a new file with the same kernel number gets another one",
          "[inodes]") {
  test::World world;
  Layout& w = world.w;
  const std::uint64_t a = find_inode(w, 1, 100).number;
  const std::uint64_t b = find_inode(w, 1, 101).number;
  CHECK(a > 1);
  CHECK(b == a + 1);
  CHECK(find_inode(w, 1, 100).number == a);
  CHECK(find_inode(w, 2, 100).number == b + 1);
  CHECK(make_inode(w, 1, 100).number == b + 2);
  CHECK(find_inode(w, 1, 100).number == b + 2);
  CHECK(find_inode(w, 1, 101).number == b);
}

TEST_CASE("numbers are dropped only by age (N1)", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  const InodeRecord& first = find_inode(w, 1, 7);
  const std::uint64_t number = first.number;
  const std::uint32_t record = index_of(w, first);
  for (std::uint64_t i = 0; i + 1 < kInodesMax; ++i) find_inode(w, 3, 1000 + i * 77);
  CHECK(is_inode(w, record, number));
  CHECK(find_inode(w, 1, 7).number == number);
  const std::uint64_t next = find_inode(w, 4, 1).number;
  CHECK(next == number + kInodesMax);
  CHECK_FALSE(is_inode(w, record, number));
  CHECK(find_inode(w, 1, 7).number == next + 1);
}

TEST_CASE("a held number is not dropped and not given to another file", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  InodeRecord& kept = find_inode(w, 1, 7);
  const std::uint64_t number = kept.number;
  hold_inode(w, kept);
  std::uint64_t last = number;
  for (std::uint64_t i = 0; i < 3 * kInodesMax; ++i) {
    const std::uint64_t given = find_inode(w, 3, 1000 + i).number;
    REQUIRE(given > last);
    REQUIRE((given - number) % kInodesMax != 0);
    last = given;
  }
  CHECK(find_inode(w, 1, 7).number == number);
  rename_inodes(
      w,
      [](void*, std::string_view, std::uint64_t& device, std::uint64_t&) noexcept {
        ++device;
        return true;
      },
      nullptr);
  CHECK(find_inode(w, 2, 7).number == number);
  CHECK(w.inodes.held == 1);
  CHECK(make_inode(w, 2, 7).number > last);
  CHECK(w.inodes.held == 1);
}

TEST_CASE("a held number gives way to a younger number of the same name", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  hold_inode(w, find_inode(w, 1, 7));
  for (std::uint64_t i = 0; i < kInodesMax - 100; ++i) find_inode(w, 3, 1000 + i);
  const std::uint64_t young = find_inode(w, 1, 8).number;
  for (std::uint64_t i = 0; i < 200; ++i) find_inode(w, 4, i);  // past the held number's place
  rename_inodes(
      w,
      [](void*, std::string_view, std::uint64_t& device, std::uint64_t& inode) noexcept {
        if (device == 1) inode = 9;
        return true;
      },
      nullptr);
  CHECK(find_inode(w, 1, 9).number == young);
}

// One kernel reuses the number of a deleted file for a new file, the other kernel does not.
TEST_CASE("the numbers given do not depend on the kernel's numbers (N1)", "[inodes]") {
  test::World one, other;
  const auto hold = [](Layout& w, std::uint64_t inode) { hold_inode(w, find_inode(w, 1, inode)); };
  for (std::uint64_t i = 0; i < 10; ++i) {
    hold(one.w, i);
    hold(other.w, i);
  }
  CHECK(make_inode(one.w, 1, 5).number == make_inode(other.w, 1, 500).number);
  // This replica rejoins, and another existing file has the kernel number of a held one.
  rename_inodes(
      one.w,
      [](void*, std::string_view, std::uint64_t&, std::uint64_t& inode) noexcept {
        if (inode == 6) inode = 7;
        return inode != 7;
      },
      nullptr);
  for (std::uint64_t i = 0; i < 3 * kInodesMax; ++i) {
    REQUIRE(make_inode(one.w, 2, i).number == make_inode(other.w, 2, i % 1000).number);
  }
}

TEST_CASE("at most kInodesHeldMax numbers are held", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  for (std::uint64_t i = 0; i < kInodesMax; ++i) hold_inode(w, find_inode(w, 1, i));
  CHECK(w.inodes.held == kInodesHeldMax);
  const std::uint64_t first = find_inode(w, 1, 0).number;
  for (std::uint64_t i = 0; i < kInodesMax; ++i) find_inode(w, 2, i);
  CHECK(find_inode(w, 1, 0).number == first);
  CHECK(find_inode(w, 1, kInodesHeldMax).number > first + kInodesMax);
}

// Records reached through the buckets; one more than exist if a chain is broken.
std::uint32_t chained(const Layout& w) {
  std::uint32_t count = 0;
  for (const std::uint32_t head : w.inodes.buckets) {
    for (std::uint32_t i = head; i != 0 && count <= kInodesMax; i = w.inodes.records[i - 1].next) {
      ++count;
    }
  }
  return count;
}

TEST_CASE("every record that is not free is in exactly one bucket (N2)", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  for (std::uint64_t i = 0; i < 1000; ++i) find_inode(w, 1, i * 31);
  for (std::uint64_t i = 0; i < 100; ++i) make_inode(w, 1, i * 31);
  CHECK(chained(w) == 1000);
  for (std::uint64_t i = 0; i < 2 * kInodesMax; ++i) find_inode(w, 2, i * 64);
  CHECK(chained(w) == kInodesMax);
}

TEST_CASE("renamed files keep their numbers, and a deleted file gives way", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  const std::uint64_t kept = find_inode(w, 1, 100).number;
  const std::uint64_t gone = find_inode(w, 1, 101).number;
  const std::uint64_t young = find_inode(w, 1, 102).number;
  const std::uint64_t other = find_inode(w, 9, 100).number;
  // 102 is now called 201, and so would 101 be, which has the same path.
  rename_inodes(
      w,
      [](void*, std::string_view, std::uint64_t& device, std::uint64_t& inode) noexcept {
        if (device != 1) return false;
        device = 5;
        inode = inode == 100 ? 200 : 201;
        return true;
      },
      nullptr);
  CHECK(find_inode(w, 5, 200).number == kept);
  CHECK(find_inode(w, 5, 201).number == young);
  CHECK(find_inode(w, 9, 100).number == other);
  CHECK(chained(w) == 3);
  CHECK(find_inode(w, 1, 101).number > gone);  // as a file never seen before
  CHECK(chained(w) == 4);
}

TEST_CASE("an existing file keeps its number when a deleted one gets its name", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  const std::uint64_t there = find_inode(w, 1, 100).number;
  const std::uint64_t gone = find_inode(w, 1, 300).number;  // younger, and deleted
  const std::uint64_t lower = find_inode(w, 1, 400).number;
  rename_inodes(
      w,
      [](void*, std::string_view, std::uint64_t& device, std::uint64_t& inode) noexcept {
        device = 5;
        if (inode != 100) return false;
        inode = 300;
        return true;
      },
      nullptr);
  CHECK(find_inode(w, 5, 300).number == there);
  CHECK(find_inode(w, 5, 400).number == lower);
  CHECK(chained(w) == 2);
  CHECK(gone != there);
}

TEST_CASE("the newest kPathsBytes of paths are kept, each whole", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  const auto path = [](std::uint64_t i) {
    return "/" + std::string(i % 1000, 'x') + std::to_string(i);
  };
  CHECK(path_of(w, find_inode(w, 1, 1)).empty());
  constexpr std::uint64_t kFirst = 100, kCount = 40'000;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < kCount; ++i)
    remember_path(w, find_inode(w, 1, kFirst + i), path(i));
  for (std::uint64_t i = kCount; i-- > 0;) {
    bytes += path(i).size();
    const std::string_view known = path_of(w, find_inode(w, 1, kFirst + i));
    REQUIRE((known.empty() || known.data() + known.size() <= w.inodes.paths + kPathsBytes));
    if (bytes + 2 * path(i).size() > kPathsBytes) {
      CHECK((known.empty() || known == path(i)));
    } else {
      REQUIRE(known == path(i));
    }
  }
  CHECK(bytes > 2 * kPathsBytes);
  CHECK(path_of(w, find_inode(w, 1, kFirst)).empty());
}

TEST_CASE("the renaming function gets the path and also renames the root", "[inodes]") {
  test::World world;
  Layout& w = world.w;
  w.inodes.root_device = 1;
  w.inodes.root_inode = 2;
  InodeRecord& file = find_inode(w, 1, 100);
  const std::uint64_t number = file.number;
  remember_path(w, file, "/etc/passwd");
  rename_inodes(
      w,
      [](void*, std::string_view path, std::uint64_t& device, std::uint64_t& inode) noexcept {
        device = 7;
        inode = path == "/" ? 20 : path == "/etc/passwd" ? 1000 : 0;
        return true;
      },
      nullptr);
  CHECK(find_inode(w, 7, 1000).number == number);
  CHECK(path_of(w, find_inode(w, 7, 1000)) == "/etc/passwd");
  CHECK(w.inodes.root_device == 7);
  CHECK(w.inodes.root_inode == 20);
}

}  // namespace
}  // namespace crane::dmt
