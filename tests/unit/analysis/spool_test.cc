// SPDX-License-Identifier: Apache-2.0
// GOAL    SPOOL-1: the spool of an analysis replica never exceeds its limit. It can be read while
//         it grows, and entries that were read take no space.
// METHOD  Entries are put into a spool in a temporary directory, and a history follower reads them.
#include "proxy/analysis/spool.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "proxy/record/history_follow.h"

using namespace crane;
using namespace crane::node;

namespace {

struct Fixture {
  std::string dir = [] {
    std::string name = "/var/tmp/crane-spool-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  ~Fixture() { std::filesystem::remove_all(dir); }

  std::unique_ptr<Spool> open(std::uint64_t limit) const {
    auto spool = Spool::open(dir, 2, R"({"about": 1})", limit);
    REQUIRE(spool.ok());
    return std::move(spool).value();
  }
  proxy::HistoryFollower follow() const {
    std::string why;
    auto follower = proxy::HistoryFollower::open(dir + "/replica-2.history", why);
    INFO(why);
    REQUIRE(follower.ok());
    return std::move(follower).value();
  }
  std::uint64_t blocks() const {
    struct stat about {};
    REQUIRE(::stat((dir + "/replica-2.history").c_str(), &about) == 0);
    return static_cast<std::uint64_t>(about.st_blocks) * 512;
  }
};

void put(Spool& spool, std::uint64_t index, std::size_t bytes) {
  const std::vector<std::byte> payload(bytes, std::byte{0x41});
  consensus::EntryView e;
  e.at = {make_view(1, ReplicaId{0}), Index{index}};
  e.type = 3;
  e.stamp_ns = index;
  e.payload = payload;
  spool.committed(e);
}

}  // namespace

TEST_CASE("spool: it can be read while it grows, and to its end", "[analysis]") {
  const Fixture fixture;
  const auto spool = fixture.open(1U << 20);
  auto follower = fixture.follow();
  CHECK(follower.about() == R"({"about": 1})");
  CHECK(follower.replica() == 2);
  CHECK_FALSE(follower.next());
  for (std::uint64_t i = 1; i <= 100; ++i) put(*spool, i, i);
  spool->flush();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const auto entry = follower.next();
    REQUIRE(entry);
    CHECK(value(entry->at.index) == i);
    CHECK(entry->payload.size() == i);
  }
  CHECK_FALSE(follower.next());
  CHECK_FALSE(follower.ended());
  CHECK(follower.damage().empty());
  put(*spool, 101, 7);
  spool->end("enough");
  put(*spool, 102, 7);  // dropped
  CHECK(spool->take_message() == "entries after 101 are not analysed: enough");
  CHECK(spool->take_message().empty());
  REQUIRE(follower.next());
  CHECK_FALSE(follower.next());
  CHECK(follower.ended());
  CHECK(follower.last() == 101);
  CHECK(spool->last() == 101);
}

TEST_CASE("spool: it ends at its limit, reports that once, and holds only whole entries (Y2)",
          "[analysis]") {
  const Fixture fixture;
  constexpr std::uint64_t kLimit = 3U << 20;
  const auto spool = fixture.open(kLimit);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    put(*spool, i, 100'000);
    REQUIRE(spool->kept() <= kLimit);
  }
  CHECK(spool->ended());
  const std::uint64_t last = spool->last();
  CHECK(last == kLimit / 100'056);
  const std::string message = spool->take_message();
  CHECK(message.find("entries after " + std::to_string(last) + " are not analysed: ") == 0);
  CHECK(message.find("3 MB") != std::string::npos);
  CHECK(message.find("--analysis-spool-mb") != std::string::npos);
  CHECK(spool->take_message().empty());
  auto follower = fixture.follow();
  while (follower.next()) {
  }
  CHECK(follower.ended());
  CHECK(follower.last() == last);
}

TEST_CASE("spool: with a reader that keeps pace it stays below the limit and takes no space (Y2)",
          "[analysis]") {
  const Fixture fixture;
  constexpr std::uint64_t kLimit = 24U << 20;
  const auto spool = fixture.open(kLimit);
  auto follower = fixture.follow();
  std::uint64_t most = 0;
  for (std::uint64_t i = 1; i <= 600; ++i) {  // 60 MB
    put(*spool, i, 100'000);
    spool->flush();
    while (follower.next()) {
    }
    spool->read_up_to(follower.position());
    most = std::max(most, fixture.blocks());
  }
  CHECK_FALSE(spool->ended());
  CHECK(follower.last() == 600);
  CHECK(follower.damage().empty());
  CHECK(most <= kLimit);
  spool->end("enough");
  CHECK_FALSE(follower.next());
  CHECK(follower.ended());
}
