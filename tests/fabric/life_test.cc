// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

#include "consensus/fabric/shm_life.h"
#include "dmt/base/clock.h"
#include "tests/fabric/harness.h"

using namespace crane;
using namespace crane::test;
using crane::consensus::Urgency;
using crane::consensus::shm::LifeLine;
using crane::consensus::shm::LifeWatch;

namespace {

constexpr std::uint8_t kReplicas = 3;

bool is_signalled(const LifeWatch& watch, int timeout_ms) {
  pollfd p{watch.fd(), POLLIN, 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

int policy() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

void turn(Urgency& urgency) { urgency.turn(static_cast<std::uint64_t>(monotonic_ns())); }

struct Flag {
  std::atomic<bool> set;
};

}  // namespace

TEST_CASE("life line: every watcher notices a killed process, none before", "[fabric][life]") {
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
  REQUIRE(first.start(directory.path(), kReplicas, ReplicaId{0}, nullptr).ok());
  REQUIRE(second.start(directory.path(), kReplicas, ReplicaId{2}, nullptr).ok());
  child.stop();
  CHECK_FALSE(is_signalled(first, 0));  // a stopped process is not dead
  child.resume();
  CHECK_FALSE(is_signalled(second, 0));
  child.kill();
  CHECK(is_signalled(first, 10'000));
  CHECK(is_signalled(second, 10'000));
}

TEST_CASE("life line: a closed one is noticed, too; the next process has another file",
          "[fabric][life]") {
  TemporaryDirectory directory;
  auto line = std::make_unique<LifeLine>();
  REQUIRE(line->hold(directory.path(), kReplicas).ok());
  LifeWatch watch;
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{1}, nullptr).ok());
  LifeLine next;
  REQUIRE(next.hold(directory.path(), kReplicas).ok());
  CHECK_FALSE(is_signalled(watch, 0));
  line.reset();
  CHECK(is_signalled(watch, 10'000));
  LifeWatch again;
  REQUIRE(again.start(directory.path(), kReplicas, ReplicaId{1}, nullptr).ok());
  CHECK_FALSE(is_signalled(again, 0));
}

TEST_CASE("life line: a stopped watch blocks no process", "[fabric][life]") {
  TemporaryDirectory directory;
  LifeLine line;
  REQUIRE(line.hold(directory.path(), kReplicas).ok());
  LifeWatch watch;
  CHECK(watch.fd() == -1);
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{0}, nullptr).ok());
  watch.stop();
  CHECK(watch.fd() == -1);
  CHECK_FALSE(watch.start(directory.path() + "/absent", kReplicas, ReplicaId{0}, nullptr).ok());
}

TEST_CASE("life line: a death makes the loop's thread urgent, for a while", "[fabric][life]") {
  TemporaryDirectory directory;
  auto line = std::make_unique<LifeLine>();
  REQUIRE(line->hold(directory.path(), kReplicas).ok());
  const auto urgency = std::make_shared<Urgency>();
  LifeWatch watch;
  REQUIRE(watch.start(directory.path(), kReplicas, ReplicaId{1}, urgency).ok());
  CHECK(policy() == SCHED_OTHER);
  line.reset();
  REQUIRE(is_signalled(watch, 10'000));
  if (policy() != SCHED_RR) {
    std::printf("SKIPPED: life line: urgent: no privilege for real-time priorities\n");
    return;
  }
  urgency->watch();  // takes the priority back once the loop has used it
  CHECK(until([&] { return turn(*urgency), policy() == SCHED_OTHER; }));
}

TEST_CASE("urgency: a loop that does not turn gets the priority, and loses it after use",
          "[fabric][life]") {
  Urgency urgency;
  urgency.watch();
  // A loop that sleeps, as seen from outside, keeps it.
  if (!until([] { return policy() == SCHED_RR; })) {
    std::printf("SKIPPED: urgency: no privilege for real-time priorities\n");
    return;
  }
  // A loop that turns all the time always has the ordinary policy.
  CHECK(until([&] { return turn(urgency), policy() == SCHED_OTHER; }));
  // Repeatedly, also after the watching thread went to sleep because the loop was idle.
  for (int i = 0; i < 3; ++i) {
    let_pass_us(20'000);
    CHECK(until([] { return policy() == SCHED_RR; }));
    CHECK(until([&] { return turn(urgency), policy() == SCHED_OTHER; }));
  }
}

TEST_CASE("urgency: the thread looks at a loop when it would be late, and not before",
          "[fabric][life][URGENCY-1]") {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  // A loop that turns now and then, watched for a second.
  const auto looks = [](std::uint64_t every_ns) {
    int n = 0;
    for (std::uint64_t now = kSecond, pause = 0; now < 2 * kSecond; now += pause, ++n) {
      const std::uint64_t turned = now - now % every_ns;
      pause = Urgency::until_late_ns(now, turned);
      CHECK(now + pause == turned + Urgency::kLateNs);
    }
    return n;
  };
  CHECK(looks(10'000) <= 201);
  CHECK(looks(2'000'000) <= 334);
  CHECK(Urgency::until_late_ns(kSecond + Urgency::kLateNs, kSecond) == 0);
  CHECK(Urgency::until_late_ns(2 * kSecond, kSecond) == 0);
}

TEST_CASE("urgency: after stop() the thread has the ordinary policy", "[fabric][life]") {
  Urgency urgency;
  urgency.watch();
  urgency.begin();
  urgency.stop();
  CHECK(policy() == SCHED_OTHER);
  urgency.begin();  // as by a watch that sees a death
  CHECK(policy() == SCHED_OTHER);
}
