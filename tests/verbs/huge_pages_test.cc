// SPDX-License-Identifier: Apache-2.0
// GOAL    The log memory is on huge pages if possible, and a replica reports whether it is;
//         "require" and "never" are obeyed.
// METHOD  In the virtual machine a replica is opened, closed and reopened with other choices.
//         prctl(2) takes huge pages away from the process.
// CHECKS  The result of status() agrees with /proc/self/smaps; the bytes survive the moves; the
//         fallback works; the error of "require".
#include <sys/prctl.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "consensus/fabric/verbs_links.h"
#include "tests/verbs/verbs_group.h"

namespace crane::test {
namespace {

using consensus::HugePages;
using consensus::VerbsFabric;
using Opened = Result<std::unique_ptr<VerbsFabric>>;

constexpr std::size_t kLog = (6U << 20) + 4096;  // not a whole number of huge pages
constexpr std::size_t kHugeKiB = 6U << 10;

// While an object exists, this process gets no huge pages.
struct NoHugePages {
  NoHugePages() { REQUIRE(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); }
  ~NoHugePages() { ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); }
};

// Returns the KiB of the mapping at `at` that are on huge pages.
std::size_t huge_kib(const std::byte* at) {
  char begin[32];
  std::snprintf(begin, sizeof begin, "%zx-", reinterpret_cast<std::size_t>(at));
  std::ifstream in("/proc/self/smaps");
  bool here = false;
  const std::string key = "ShmemPmdMapped:";
  for (std::string line; std::getline(in, line);) {
    here = here || line.starts_with(begin);
    if (here && line.starts_with(key)) return std::stoul(line.substr(key.size()));
  }
  FAIL("the log memory is not mapped");
  return 0;
}

Opened open_with(const std::string& directory, HugePages pages, std::size_t bytes = kLog) {
  consensus::verbs::LinksOptions links;
  links.self = ReplicaId{0};
  links.secret.fill(std::byte{7});
  links.endpoints = verbs_endpoints(3, next_verbs_port());
  auto bootstrap = consensus::verbs::Links::open(links);
  REQUIRE(bootstrap.ok());
  consensus::VerbsOptions options;
  options.directory = directory;
  options.group = 79;
  options.log_bytes = bytes;
  options.address = links.endpoints[0].address;
  options.huge_pages = pages;
  return VerbsFabric::open(options, std::move(bootstrap).value());
}

std::unique_ptr<VerbsFabric> opened(const std::string& directory, HugePages pages) {
  Opened out = open_with(directory, pages);
  REQUIRE(out.ok());
  CHECK(out.value()->log_memory().size() == kLog);
  return std::move(out).value();
}

// Numbers that depend on the position, so that swapped pages are detected.
void fill(std::span<std::byte> memory) {
  std::mt19937_64 random(kLog);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
}

bool filled(std::span<const std::byte> memory) {
  std::mt19937_64 random(kLog);
  for (const std::byte b : memory) {
    if (b != static_cast<std::byte>(random())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("huge pages: a new log is on them, or on small pages if there are none", "[fabric]") {
  const TemporaryDirectory with, without;
  const auto fabric = opened(with.path(), HugePages::kAuto);
  CHECK(fabric->status().pages == "2 MiB");
  CHECK(huge_kib(fabric->log_memory().data()) == kHugeKiB);
  const NoHugePages none;
  const auto other = opened(without.path(), HugePages::kAuto);
  CHECK(other->status().pages == "4 KiB");
  CHECK(huge_kib(other->log_memory().data()) == 0);
}

TEST_CASE("huge pages: an existing log is moved with its content", "[fabric]") {
  const TemporaryDirectory directory;
  auto fabric = opened(directory.path(), HugePages::kNever);
  CHECK(fabric->status().pages == "4 KiB");
  CHECK(huge_kib(fabric->log_memory().data()) == 0);
  fill(fabric->log_memory());
  for (const auto choice : {HugePages::kRequire, HugePages::kAuto, HugePages::kNever}) {
    fabric.reset();
    fabric = opened(directory.path(), choice);
    CHECK(fabric->survived());
    CHECK(filled(fabric->log_memory()));
    if (choice == HugePages::kNever) break;
    CHECK(fabric->status().pages == "2 MiB");
    CHECK(huge_kib(fabric->log_memory().data()) == kHugeKiB);
  }
}

TEST_CASE("huge pages: requiring missing ones is an error, and loses nothing", "[fabric]") {
  const TemporaryDirectory directory;
  fill(opened(directory.path(), HugePages::kAuto)->log_memory());
  {
    const NoHugePages none;
    const Opened refused = open_with(directory.path(), HugePages::kRequire);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kUnsupported);
  }
  const auto fabric = opened(directory.path(), HugePages::kRequire);
  CHECK(fabric->survived());
  CHECK(filled(fabric->log_memory()));
  // A log shorter than a huge page has none.
  const TemporaryDirectory another;
  CHECK(open_with(another.path(), HugePages::kRequire, 1U << 20).error().code ==
        Code::kUnsupported);
}

}  // namespace crane::test
