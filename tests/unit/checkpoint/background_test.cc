// SPDX-License-Identifier: Apache-2.0
// GOAL    A process in the background has a small share of the processors until its share is
//         raised; nothing remains of its group.
// METHOD  Processes that wait, or start and end in parallel; the kernel reports the group of each.
// CHECKS  The group of each, its weight in the kernel, and the directories.
#include "checkpoint/background.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "checkpoint/worker.h"
#include "tests/unit/checkpoint/control_group.h"

using namespace crane;
using crane::checkpoint::Background;
using crane::checkpoint::Worker;
using crane::checkpoint::WorkShare;
using namespace crane::test;

TEST_CASE("background: a small share, until it is raised", "[processes]") {
  if (!can_weigh()) return;
  PausedProcess one, other;
  const std::string before = groups_of(one.pid());
  {
    Background first, second;
    REQUIRE(first.enter(one.pid(), 10));
    REQUIRE(second.enter(other.pid(), 30));
    CHECK(weight_of(one.pid()) == 10);
    CHECK(weight_of(other.pid()) == 30);
    CHECK(first.set(Background::kUsual));
    CHECK(weight_of(one.pid()) == 100);
    CHECK(first.set(300));
    CHECK(weight_of(one.pid()) == 300);
    CHECK(first.set(10));
    Background::lift(one.pid());
    CHECK(weight_of(one.pid()) == 100);
    CHECK(weight_of(other.pid()) == 30);
    CHECK(first.leave(one.pid()));
    CHECK(groups_of(one.pid()) == before);
    CHECK_FALSE(group_of(one.pid()).empty());
  }
  CHECK(group_of(one.pid()).empty());
  CHECK(weight_of(other.pid()) == 30);  // a process in a group keeps its weight
  const pid_t gone = other.pid();
  other.end();
  Background::remove_left();
  CHECK(group_of(gone).empty());
}

TEST_CASE("background: a whole group, but not the caller's", "[processes]") {
  if (!can_weigh()) return;
  PausedProcess one;
  Background place;
  REQUIRE(place.enter(one.pid(), Background::kUsual));
  const std::string idle = group_of(one.pid()) + "/cpu.idle";
  if (!std::filesystem::exists(idle)) return;
  CHECK(Background::set_group(one.pid(), true));
  CHECK(slurp(idle) == "1\n");
  CHECK(Background::set_group(one.pid(), false));
  CHECK(slurp(idle) == "0\n");
  CHECK_FALSE(Background::set_group(::getpid(), true));
  one.end();
  const pid_t inside = ::fork();
  if (inside == 0) {
    Background own;
    const bool well = own.enter(::getpid(), Background::kUsual) &&
                      !Background::set_group(::getpid(), true) && weight_of(::getpid()) == 100;
    ::_exit(well ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(inside, &status, 0) == inside);
  CHECK(status == 0);
  Background::remove_left();
}

TEST_CASE("background: a process that has ended, or never existed, enters no group",
          "[processes]") {
  if (!can_weigh()) return;
  PausedProcess one;
  const pid_t gone = one.pid();
  one.end();
  Background none;
  CHECK_FALSE(none.enter(gone, 10));
  CHECK_FALSE(none.set(10));
  CHECK_FALSE(none.leave(gone));
  CHECK(group_of(gone).empty());
}

TEST_CASE("background: many processes enter and leave at once", "[processes]") {
  if (!can_weigh()) return;
  constexpr int kRounds = 100, kOthers = 3;
  pid_t others[kOthers];
  for (pid_t& other : others) {
    other = ::fork();
    if (other != 0) continue;
    const PausedProcess one;
    bool well = true;
    for (int i = 0; i < kRounds && well; ++i) {
      Background place;
      Background::remove_left();
      well = place.enter(one.pid(), 10) && weight_of(one.pid()) == 10 && place.leave(one.pid());
    }
    ::kill(one.pid(), SIGKILL);
    ::_exit(well && group_of(one.pid()).empty() ? 0 : 1);
  }
  for (const pid_t other : others) {
    int status = 0;
    REQUIRE(::waitpid(other, &status, 0) == other);
    CHECK(status == 0);
  }
}

TEST_CASE("work share: never zero, and more after each wait", "[SHARE-1]") {
  constexpr std::int64_t kMs = 1'000'000;
  for (const bool urgent : {false, true}) {
    unsigned before = WorkShare::kLeast;
    for (std::int64_t ms = 0; ms <= WorkShare::kMostNs / kMs; ms += 100) {
      const unsigned percent = WorkShare::percent(ms * kMs, urgent);
      CHECK(percent >= before);
      before = percent;
    }
    CHECK(before == WorkShare::kMost);
  }
  CHECK(WorkShare::percent(0, false) == WorkShare::kLeast);
  CHECK(WorkShare::percent(0, true) == WorkShare::kUsual);
  CHECK(WorkShare::percent(6'000 * kMs, false) == WorkShare::kUsual);
  CHECK(WorkShare::nice_value(WorkShare::kLeast) > WorkShare::nice_value(30));
  CHECK(WorkShare::nice_value(30) > WorkShare::nice_value(WorkShare::kUsual));
  CHECK(WorkShare::nice_value(WorkShare::kUsual) == 0);
}

TEST_CASE("background: a worker has a small share, and the usual one after hurry()",
          "[processes][SHARE-1]") {
  if (!can_weigh()) return;
  const auto job = [](const Worker::Report& report) -> Result<std::string> {
    report.line(std::to_string(weight_of(::getpid())));
    // hurry()'s signal ends the pause, for which the test waits.  The job hardly needs a processor,
    // so it cannot get the usual share by waiting.
    while (weight_of(::getpid()) < Background::kUsual) ::usleep(500'000);  // poll
    return std::to_string(::getpid());
  };
  Worker worker;
  REQUIRE(worker.start(job).ok());
  REQUIRE(eventually([&] { return worker.advance() || !worker.progress().empty(); }, 60'000));
  // On a crowded machine the job may have waited before it could check its weight.
  CHECK(std::stoul(worker.progress()) >= WorkShare::kLeast);
  CHECK(std::stoul(worker.progress()) < Background::kUsual);
  worker.hurry();
  REQUIRE(eventually([&] { return worker.advance(); }, 20'000));
  REQUIRE(worker.result().ok());
  Background::remove_left();
  CHECK(group_of(std::stoi(worker.result().value())).empty());
}

TEST_CASE("background: a worker may get hurry() before its first step", "[processes]") {
  for (int i = 0; i < 20; ++i) {
    Worker worker;
    REQUIRE(
        worker
            .start([](const Worker::Report&) { return Result<std::string>(std::string("there")); })
            .ok());
    worker.hurry();
    REQUIRE(eventually([&] { return worker.advance(); }, 60'000));
    REQUIRE(worker.result().ok());
  }
}

TEST_CASE("background: a stopped worker gets the usual share for its last steps", "[processes]") {
  if (!can_weigh()) return;
  Worker worker;
  const auto job = [](const Worker::Report& report) -> Result<std::string> {
    report.line(std::to_string(::getpid()));
    for (;;) ::pause();
  };
  REQUIRE(worker.start(job).ok());
  REQUIRE(eventually([&] { return worker.advance() || !worker.progress().empty(); }, 60'000));
  const pid_t pid = std::stoi(worker.progress());
  const std::string group = group_of(pid);
  worker.stop();
  const std::string shares = slurp(group + "/cpu.shares"), weight = slurp(group + "/cpu.weight");
  CHECK((shares.empty() ? weight : shares) == (shares.empty() ? "100\n" : "1024\n"));
  Background::remove_left();
  CHECK(group_of(pid).empty());
}
