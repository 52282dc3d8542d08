// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

#include "consensus/fabric/shm_life.h"
#include "tests/fabric/harness.h"

using namespace crane;
using namespace crane::test;
using crane::consensus::Urgency;
using crane::consensus::shm::LifeLine;
using crane::consensus::shm::LifeWatch;

namespace {

constexpr std::uint8_t kReplicas = 3;

bool told(const LifeWatch& watch, int timeout_ms) {
  pollfd p{watch.fd(), POLLIN, 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

int policy() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

// The deaths of a test are no business of the next one.
void calm_down(Urgency& urgency) {
  REQUIRE(until([&] { return urgency.end_when_over(), policy() == SCHED_OTHER; }));
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
  const auto urgency = std::make_shared<Urgency>();
  LifeWatch first, second;
  REQUIRE(first.start(directory.path(), kReplicas, ReplicaId{0}, urgency).ok());
  REQUIRE(second.start(directory.path(), kReplicas, ReplicaId{2}, urgency).ok());
  child.stop();
  CHECK_FALSE(told(first, 0));  // stopped is not dead
  child.resume();
  CHECK_FALSE(told(second, 0));
  child.kill();
  CHECK(told(first, 10'000));
  CHECK(told(second, 10'000));
  calm_down(*urgency);
}

TEST_CASE("life line: a closed one tells too, its successor's file is another", "[fabric][life]") {
  TemporaryDirectory directory;
  auto line = std::make_unique<LifeLine>();
  REQUIRE(line->hold(directory.path(), kReplicas).ok());
  const auto urgency = std::make_shared<Urgency>();
  LifeWatch watch;
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{1}, urgency).ok());
  LifeLine next;
  REQUIRE(next.hold(directory.path(), kReplicas).ok());
  CHECK_FALSE(told(watch, 0));
  line.reset();
  CHECK(told(watch, 10'000));
  LifeWatch again;
  REQUIRE(again.start(directory.path(), kReplicas, ReplicaId{1}, urgency).ok());
  CHECK_FALSE(told(again, 0));
  calm_down(*urgency);
}

TEST_CASE("life line: a watch that is stopped keeps nobody waiting", "[fabric][life]") {
  TemporaryDirectory directory;
  LifeLine line;
  REQUIRE(line.hold(directory.path(), kReplicas).ok());
  const auto urgency = std::make_shared<Urgency>();
  LifeWatch watch;
  CHECK(watch.fd() == -1);
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{0}, urgency).ok());
  watch.stop();
  CHECK(watch.fd() == -1);
  CHECK_FALSE(watch.start(directory.path() + "/absent", kReplicas, ReplicaId{0}, urgency).ok());
}

TEST_CASE("life line: a death makes the loop's thread urgent, for a while", "[fabric][life]") {
  TemporaryDirectory directory;
  auto line = std::make_unique<LifeLine>();
  REQUIRE(line->hold(directory.path(), kReplicas).ok());
  const auto urgency = std::make_shared<Urgency>();
  LifeWatch watch;
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{1}, urgency).ok());
  calm_down(*urgency);
  line.reset();
  REQUIRE(told(watch, 10'000));
  if (policy() != SCHED_RR) {
    std::printf("SKIPPED: life line: urgent: no privilege for real-time priorities\n");
    return;
  }
  calm_down(*urgency);
}
