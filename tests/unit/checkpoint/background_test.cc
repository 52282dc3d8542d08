// SPDX-License-Identifier: Apache-2.0
// GOAL    Who is in the background has the processors last, until it is told otherwise; nothing is
//         left of it.
// METHOD  Processes that wait, or come and go beside each other; the kernel says where each is.
// CHECKS  The group of each, what the kernel holds of it, and the directories.
#include "checkpoint/background.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

#include "checkpoint/worker.h"
#include "tests/unit/checkpoint/behind.h"

using namespace crane;
using crane::checkpoint::Background;
using Share = crane::checkpoint::Background::Share;
using crane::checkpoint::Worker;
using namespace crane::test;

namespace {

// Of a thousand, as the processes of a group that nobody has changed weigh.
int weight_of(pid_t pid) {
  const std::string shares = slurp(group_of(pid) + "/cpu.shares");  // version 1
  return shares.empty() ? std::atoi(slurp(group_of(pid) + "/cpu.weight").c_str()) * 10
                        : std::atoi(shares.c_str());
}

void set_idle(pid_t pid, const char* text) { std::ofstream(group_of(pid) + "/cpu.idle") << text; }

}  // namespace

TEST_CASE("background: last of all, until it is told otherwise", "[processes]") {
  if (!can_be_last()) return;
  Waiting one, other;
  const std::string before = groups_of(one.pid());
  {
    Background first, second;
    REQUIRE(first.enter(one.pid()));
    REQUIRE(second.enter(other.pid()));
    CHECK(is_last(one.pid()));
    CHECK(first.set(Share::kUsual));
    CHECK_FALSE(is_last(one.pid()));
    CHECK(is_last(other.pid()));
    CHECK(weight_of(one.pid()) > 100);
    CHECK(first.set(Share::kLittle));
    CHECK_FALSE(is_last(one.pid()));
    CHECK(weight_of(one.pid()) < 20);
    CHECK(first.set(Share::kLeft));
    CHECK(is_last(one.pid()));
    Background::lift(one.pid());
    CHECK_FALSE(is_last(one.pid()));
    CHECK(is_last(other.pid()));
    CHECK(first.leave(one.pid()));
    CHECK(groups_of(one.pid()) == before);
    CHECK_FALSE(group_of(one.pid()).empty());
  }
  CHECK(group_of(one.pid()).empty());
  CHECK(is_last(other.pid()));  // who is in one keeps it
  const pid_t gone = other.pid();
  other.end();
  Background::remove_left();
  CHECK(group_of(gone).empty());
}

TEST_CASE("background: a group as a whole, but not one's own", "[processes]") {
  if (!can_be_last()) return;
  Waiting one;
  Background place;
  REQUIRE(place.enter(one.pid()));
  REQUIRE(place.set(Share::kUsual));
  CHECK(Background::set_group(one.pid(), true));
  CHECK(is_last(one.pid()));
  CHECK(Background::set_group(one.pid(), false));
  CHECK_FALSE(is_last(one.pid()));
  CHECK_FALSE(Background::set_group(::getpid(), true));
  one.end();
  const pid_t inside = ::fork();
  if (inside == 0) {
    Background own;
    const bool well = own.enter(::getpid()) && own.set(Share::kUsual) &&
                      !Background::set_group(::getpid(), true) && !is_last(::getpid());
    ::_exit(well ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(inside, &status, 0) == inside);
  CHECK(status == 0);
  Background::remove_left();
}

TEST_CASE("background: who has ended, or was never there, enters nothing", "[processes]") {
  if (!can_be_last()) return;
  Waiting one;
  const pid_t gone = one.pid();
  one.end();
  Background none;
  CHECK_FALSE(none.enter(gone));
  CHECK_FALSE(none.set(Share::kUsual));
  CHECK_FALSE(none.leave(gone));
  CHECK(group_of(gone).empty());
}

TEST_CASE("background: many come and go at once", "[processes]") {
  if (!can_be_last()) return;
  constexpr int kRounds = 100, kOthers = 3;
  pid_t others[kOthers];
  for (pid_t& other : others) {
    other = ::fork();
    if (other != 0) continue;
    const Waiting one;
    bool well = true;
    for (int i = 0; i < kRounds && well; ++i) {
      Background place;
      Background::remove_left();
      well = place.enter(one.pid()) && is_last(one.pid()) && place.leave(one.pid());
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

TEST_CASE("background: a worker is there, but not for ever", "[processes]") {
  if (!can_be_last()) return;
  const auto job = [](const Worker::Say&) -> Result<std::string> {
    ::alarm(0);
    const pid_t own = ::getpid();
    if (!is_last(own)) return std::to_string(own) + " at once";  // or after a second
    set_idle(own, "0");                                          // for what the test needs
    while (std::clock() < CLOCKS_PER_SEC / 4) continue;
    set_idle(own, "1");
    ::raise(SIGALRM);  // as after a second of which it has had a quarter
    ::alarm(0);
    if (!is_last(own)) return std::to_string(own) + " though it runs";
    ::raise(SIGALRM);  // and after one of which it has had nothing
    return std::to_string(own) + (is_last(own) ? " never" : " when it has nothing of it, ") +
           std::to_string(weight_of(own));
  };
  std::string said;
  for (int i = 0; i < 5 && said.find("when it") == std::string::npos; ++i) {
    Worker worker;
    REQUIRE(worker.start(job).ok());
    REQUIRE(eventually([&] { return worker.advance(); }, 60'000));
    REQUIRE(worker.result().ok());
    said = worker.result().value();
    CAPTURE(said);
    // On a crowded machine a second may have gone before it could look.
    REQUIRE((said.find("when it") != std::string::npos || said.find("at once") != said.npos));
  }
  REQUIRE(said.find("when it") != std::string::npos);
  CHECK(std::stoi(said.substr(said.find(',') + 1)) < 20);
  Background::remove_left();
  CHECK(group_of(std::stoi(said)).empty());
}

TEST_CASE("background: a worker that is stopped is not waited for as the last", "[processes]") {
  if (!can_be_last()) return;
  Worker worker;
  const auto job = [](const Worker::Say& progress) -> Result<std::string> {
    progress(std::to_string(::getpid()));
    for (;;) ::pause();
  };
  REQUIRE(worker.start(job).ok());
  REQUIRE(eventually([&] { return worker.advance() || !worker.progress().empty(); }, 60'000));
  const pid_t pid = std::stoi(worker.progress());
  worker.stop();
  CHECK(slurp(group_of(pid) + "/cpu.idle") == "0\n");
  Background::remove_left();
  CHECK(group_of(pid).empty());
}
