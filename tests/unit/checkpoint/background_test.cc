// SPDX-License-Identifier: Apache-2.0
// GOAL    Who is in the background has the processors last, until it is told otherwise; nothing is
//         left of it.
// METHOD  Processes that wait, or come and go beside each other; the kernel says where each is.
// CHECKS  The group of each, what the kernel holds of it, and the directories.
#include "checkpoint/background.h"

#include <poll.h>

#include <ctime>

#include "checkpoint/worker.h"
#include "tests/unit/checkpoint/behind.h"

using namespace crane;
using crane::checkpoint::Background;
using crane::checkpoint::Why;
using crane::checkpoint::Worker;
using namespace crane::test;

TEST_CASE("background: last of all, until it is told otherwise", "[processes]") {
  if (!can_be_last()) return;
  Waiting one, other;
  const std::string before = groups_of(one.pid());
  {
    Background first, second;
    REQUIRE(first.enter(one.pid()));
    REQUIRE(second.enter(other.pid()));
    CHECK(is_last(one.pid()));
    CHECK(first.be_last(false));
    CHECK_FALSE(is_last(one.pid()));
    CHECK(is_last(other.pid()));
    CHECK(first.be_last(true));
    CHECK(is_last(one.pid()));
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
  REQUIRE(place.be_last(false));
  CHECK(Background::put_group_last(one.pid()));
  CHECK(is_last(one.pid()));
  CHECK_FALSE(Background::put_group_last(::getpid()));
  one.end();
  const pid_t inside = ::fork();
  if (inside == 0) {
    Background own;
    const bool well = own.enter(::getpid()) && own.be_last(false) &&
                      !Background::put_group_last(::getpid()) && !is_last(::getpid());
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
  CHECK_FALSE(none.be_last(false));
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
  std::string said;
  {
    Worker worker;
    const auto job = [](const Worker::Say&, Why&) -> Result<std::string> {
      ::alarm(0);
      std::string text = std::to_string(::getpid());
      text += is_last(::getpid()) ? " last" : " not last";
      while (std::clock() < CLOCKS_PER_SEC / 4) continue;
      ::raise(SIGALRM);  // as after a second of which it has had a quarter
      ::alarm(0);
      text += is_last(::getpid()) ? ", still" : ", not for long";
      ::raise(SIGALRM);  // and after one of which it has had nothing
      text += is_last(::getpid()) ? ", for ever" : ", and then no more";
      return text;
    };
    REQUIRE(worker.start(job).ok());
    for (int i = 0; i < 20 && !worker.advance(); ++i) {
      pollfd fd{worker.event_fd(), POLLIN, 0};
      ::poll(&fd, 1, 1000);  // poll
    }
    REQUIRE(worker.idle());
    said = worker.result().value();
  }
  CHECK(said.find(" last, still, and then no more") != std::string::npos);
  CHECK(group_of(std::stoi(said)).empty());
}
