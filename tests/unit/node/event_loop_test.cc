// SPDX-License-Identifier: Apache-2.0
// GOAL    A node is woken by its timer, a descriptor or a signal.
// METHOD  A real loop; deadlines are in the past, so that the test does not sleep.
// CHECKS  LOOP-1, LOOP-2; descriptors that are read and those that are not; stop_waking().
#include "proxy/host/event_loop.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "dmt/base/clock.h"

using namespace crane;
using namespace crane::node;

namespace {

struct World : EventLoop::Owner {
  int wakes = 0, signals = 0;
  int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  EventLoop loop;

  World() { REQUIRE(loop.open(*this).ok()); }
  virtual ~World() { ::close(fd); }
  void woke() override { ++wakes; }
  void signalled(int signo) override { signals += signo == SIGUSR2 ? 1 : 0; }
  void ring() const {
    const std::uint64_t one = 1;
    REQUIRE(::write(fd, &one, sizeof one) == sizeof one);
  }
  bool rung() const {
    std::uint64_t count = 0;
    return ::read(fd, &count, sizeof count) == sizeof count;
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a deadline wakes the loop, and the next one can be later", "[loop]") {
  loop.arm(monotonic_ns() - 1);
  loop.wait();
  CHECK(wakes == 1);
  loop.arm(monotonic_ns() + 1'000'000);
  loop.wait();
  CHECK(wakes == 2);
}

TEST_CASE_METHOD(World, "an earlier deadline replaces a later one, a later one replaces none",
                 "[loop][LOOP-1]") {
  loop.arm(monotonic_ns() + 3'600'000'000'000);
  loop.arm(monotonic_ns() - 1);
  loop.arm(monotonic_ns() + 3'600'000'000'000);
  loop.wait();
  CHECK(wakes == 1);
}

TEST_CASE_METHOD(World, "a descriptor wakes the loop, which reads it on request", "[loop]") {
  SECTION("it is read") {
    loop.wake_by(fd, true);
    ring();
    loop.wait();
    CHECK(wakes == 1);
    CHECK_FALSE(rung());
  }
  SECTION("it is not read") {
    loop.wake_by(fd, false);
    ring();
    loop.wait();
    CHECK(wakes == 1);
    CHECK(rung());
  }
  SECTION("it is no longer watched") {
    loop.wake_by(fd, false);
    loop.stop_waking();
    ring();
    loop.poll();
    CHECK(wakes == 0);
  }
}

TEST_CASE_METHOD(World, "a signal reaches its owner", "[loop]") {
  loop.watch_signal(SIGUSR2);
  REQUIRE(::kill(::getpid(), SIGUSR2) == 0);
  loop.wait();
  CHECK(signals == 1);
}

TEST_CASE("a signal after the loop's end has no effect", "[loop][LOOP-2]") {
  {
    World world;
    world.loop.watch_signal(SIGUSR2);
  }
  REQUIRE(::kill(::getpid(), SIGUSR2) == 0);  // the default action would end this process
}

TEST_CASE_METHOD(World, "polling ends when an event has come or time is up", "[loop]") {
  loop.wake_by(fd, true);
  // Before its first trial the loop does not poll; after it, the loop polls as long as that helps.
  int asked = 0, polled = 0;
  const auto never = [&] { return ++asked < 0; };
  for (std::uint32_t i = 0; i < dmt::SpinBudget::kTryEvery; ++i) {
    CHECK_FALSE(loop.poll_for(never));
    polled += asked > 0 ? 1 : 0;
  }
  CHECK(polled == 1);
  const auto third = [&] { return ++asked == 3; };
  int helped = 0;
  for (std::uint32_t i = 0; i < 2 * dmt::SpinBudget::kTryEvery; ++i) {
    asked = 0;
    helped += loop.poll_for(third) ? 1 : 0;
  }
  CHECK(helped > static_cast<int>(dmt::SpinBudget::kTryEvery));
  ring();
  CHECK(loop.poll_for(never));
  CHECK(wakes == 1);
  CHECK_FALSE(rung());
}
