// SPDX-License-Identifier: Apache-2.0
// GOAL    The leader's answers to binds that wait: whom it asks, what it proposes, and how often.
// METHOD  A segment with a socket that asks; the test is the one who opens ports, and the log.
// CHECKS  PORT-1; answers at once and later; a proposal that must wait; a new leader.
#include "proxy/host/port_questions.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "tests/unit/node/segment_memory.h"

using namespace crane;
using namespace crane::node;

namespace {

constexpr std::uint16_t kPort = 6379;

struct Fixture : test::SegmentMemory {
  Fixture()
      : SegmentMemory(serial()),
        questions(w, {[this](std::uint16_t) { return open; },
                      [this](std::uint16_t port) {
                        asked.push_back(port);
                        return at_once;
                      },
                      [this](const PortBody& body) {
                        if (!busy) proposed.push_back(body);
                        return !busy;
                      }}) {
    w.scheduler.files_used = 2;
    w.files[2].kind = dmt::FileKind::kSocket;
    w.files[2].listener.bound.port = kPort;
    w.files[2].listener.question = 77;
    questions.wanted(kPort, 77);
  }
  bool open = false, busy = false;
  std::optional<int> at_once;
  std::vector<std::uint16_t> asked;
  std::vector<PortBody> proposed;
  PortQuestions questions;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "an error that is known at once is proposed once") {
  at_once = EADDRINUSE;
  questions.step(true);
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].question == 77);
  CHECK(proposed[0].file == 2);
  CHECK(proposed[0].error == EADDRINUSE);
  CHECK(asked == std::vector{kPort});
}

TEST_CASE_METHOD(Fixture, "nobody is asked for a port that the group has") {
  open = true;
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(Fixture, "an answer that comes later is waited for, and asked for once") {
  questions.step(true);
  questions.step(true);
  CHECK(proposed.empty());
  CHECK(asked.size() == 1);
  questions.settled(kPort, EACCES);
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == EACCES);
}

TEST_CASE_METHOD(Fixture, "a proposal that has to wait is made later") {
  at_once = EADDRINUSE;
  busy = true;
  questions.step(true);
  busy = false;
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == EADDRINUSE);
  CHECK(asked.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a follower asks nothing, and asks when it comes to lead") {
  questions.step(false);
  CHECK(asked.empty());
  questions.step(true);
  CHECK(asked.size() == 1);
  questions.step(false);
  questions.step(true);
  CHECK(asked.size() == 2);
}

TEST_CASE_METHOD(Fixture, "when the one who was asked is gone, the next one is asked") {
  questions.step(true);
  questions.ask_again();
  at_once = 0;
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == 0);
}

TEST_CASE_METHOD(Fixture, "a port that was refused is asked for again by the next question") {
  at_once = EADDRINUSE;
  questions.step(true);
  w.files[2].listener.question = 78;
  questions.wanted(kPort, 78);
  at_once = 0;
  questions.step(true);
  REQUIRE(proposed.size() == 2);
  CHECK(proposed[1].question == 78);
  CHECK(proposed[1].error == 0);
}

TEST_CASE_METHOD(Fixture, "a bind that waits no more is not answered; a restored one is") {
  at_once = 0;
  w.files[2].listener.question = 0;
  questions.step(true);
  CHECK(asked.empty());
  w.files[2].listener.question = 79;
  questions.recover();
  questions.step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].question == 79);
}
