// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>

#include "consensus/fabric/shm_life.h"
#include "tests/fabric/harness.h"

using namespace crane;
using namespace crane::test;
using crane::consensus::shm::LifeLine;
using crane::consensus::shm::LifeWatch;

namespace {

constexpr std::uint8_t kReplicas = 3;

bool told(const LifeWatch& watch, int timeout_ms) {
  pollfd p{watch.fd(), POLLIN, 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

struct Flag {
  std::atomic<bool> set;
};

}  // namespace

TEST_CASE("life line: every watcher is told of a killed process, none before", "[fabric][life]") {
  TemporaryDirectory directory;
  Shared<Flag> holds;
  Child child([&] {
    LifeLine line;
    if (!line.hold(directory.path(), kReplicas).ok()) return;
    holds->set.store(true);
    for (;;) ::pause();
  });
  REQUIRE(until([&] { return holds->set.load(); }));
  LifeWatch first, second;
  REQUIRE(first.start(directory.path(), kReplicas, ReplicaId{0}).ok());
  REQUIRE(second.start(directory.path(), kReplicas, ReplicaId{2}).ok());
  child.stop();
  CHECK_FALSE(told(first, 0));  // stopped is not dead
  child.resume();
  CHECK_FALSE(told(second, 0));
  child.kill();
  CHECK(told(first, 10'000));
  CHECK(told(second, 10'000));
}

TEST_CASE("life line: a closed one tells too, its successor's file is another", "[fabric][life]") {
  TemporaryDirectory directory;
  auto line = std::make_unique<LifeLine>();
  REQUIRE(line->hold(directory.path(), kReplicas).ok());
  LifeWatch watch;
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{1}).ok());
  LifeLine next;
  REQUIRE(next.hold(directory.path(), kReplicas).ok());
  CHECK_FALSE(told(watch, 0));
  line.reset();
  CHECK(told(watch, 10'000));
  LifeWatch again;
  REQUIRE(again.start(directory.path(), kReplicas, ReplicaId{1}).ok());
  CHECK_FALSE(told(again, 0));
}

TEST_CASE("life line: a watch that is stopped keeps nobody waiting", "[fabric][life]") {
  TemporaryDirectory directory;
  LifeLine line;
  REQUIRE(line.hold(directory.path(), kReplicas).ok());
  LifeWatch watch;
  CHECK(watch.fd() == -1);
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{0}).ok());
  watch.stop();
  CHECK(watch.fd() == -1);
  CHECK_FALSE(watch.start(directory.path() + "/absent", kReplicas, ReplicaId{0}).ok());
}
