// SPDX-License-Identifier: Apache-2.0
// GOAL    The leader's answers to binds that wait: what it asks, what it proposes, and how often.
// METHOD  The machine, with a socket that asks; the test opens the ports, and is the log.
// CHECKS  PORT-1; answers at once and later; a proposal that must wait; a new leader.
#include "proxy/replica/clients/port_questions.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::ports;

namespace {

constexpr std::uint16_t kPort = 6379;

struct Fixture {
  Fixture() { event(Wanted{kPort, 77}); }
  void event(const Event& e) {
    questions.step(e);
    ActionList list;
    while (questions.take_actions(list)) {
      for (const Action& action : list) std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
  // Socket 2 waits for the answer to `asks`; 0: for none.
  void step(bool leads) {
    std::vector<OpenQuestion> seen;
    for (const auto& [number, question] : questions.waiting()) {
      seen.push_back({number, number == asks ? 2U : 0U, open});
    }
    event(Tick{leads, seen});
  }
  std::uint64_t asks = 77;
  bool open = false, busy = false;
  std::optional<int> at_once;
  std::vector<std::uint16_t> asked;
  std::vector<PortBody> proposed;
  PortQuestions questions;

 private:
  void carry_out(const Open& o) {
    asked.push_back(o.place.port);
    questions.step(Opened{o.question, at_once});
  }
  void carry_out(const Propose& p) {
    if (!busy) proposed.push_back(p.body);
    questions.step(Proposed{p.body.question, !busy});
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "an error that is known at once is proposed once") {
  at_once = EADDRINUSE;
  step(true);
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].question == 77);
  CHECK(proposed[0].file == 2);
  CHECK(proposed[0].error == EADDRINUSE);
  CHECK(asked == std::vector{kPort});
}

TEST_CASE_METHOD(Fixture, "nothing is asked for a port that the group has") {
  open = true;
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == 0);
  CHECK(asked.empty());
}

TEST_CASE_METHOD(Fixture, "an answer that comes later is waited for, and requested once") {
  step(true);
  step(true);
  CHECK(proposed.empty());
  CHECK(asked.size() == 1);
  event(Settled{kPort, EACCES});
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == EACCES);
}

TEST_CASE_METHOD(Fixture, "a proposal that has to wait is made later") {
  at_once = EADDRINUSE;
  busy = true;
  step(true);
  busy = false;
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == EADDRINUSE);
  CHECK(asked.size() == 1);
}

TEST_CASE_METHOD(Fixture, "a follower asks nothing, and asks when it begins to lead") {
  step(false);
  CHECK(asked.empty());
  step(true);
  CHECK(asked.size() == 1);
  step(false);
  step(true);
  CHECK(asked.size() == 2);
}

TEST_CASE_METHOD(Fixture, "when the part that was asked is gone, its successor is asked") {
  step(true);
  event(AskAgain{});
  at_once = 0;
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == 0);
}

TEST_CASE_METHOD(Fixture, "a refused port is requested again for the next question") {
  at_once = EADDRINUSE;
  step(true);
  asks = 78;
  event(Wanted{kPort, 78});
  at_once = 0;
  step(true);
  REQUIRE(proposed.size() == 2);
  CHECK(proposed[1].question == 78);
  CHECK(proposed[1].error == 0);
}

TEST_CASE_METHOD(Fixture, "a bind that no longer waits is not answered; a restored one is") {
  at_once = 0;
  asks = 0;
  step(true);
  CHECK(asked.empty());
  asks = 79;
  event(Wanted{kPort, 79});
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].question == 79);
}

TEST_CASE_METHOD(Fixture, "an answer of an earlier reign does not count") {
  step(true);
  event(Settled{kPort, EACCES});
  step(false);
  at_once = 0;
  step(true);
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].error == 0);
}

TEST_CASE_METHOD(
    Fixture, "an answered question is not asked again when the part that opened the port is gone") {
  at_once = 0;
  step(true);
  event(AskAgain{});
  step(true);
  CHECK(asked.size() == 1);
  CHECK(proposed.size() == 1);
}

TEST_CASE_METHOD(Fixture, "each reign answers each question", "[PORT-1]") {
  at_once = EADDRINUSE;
  step(true);
  step(false);
  step(true);
  CHECK(proposed.size() == 2);
}

TEST_CASE_METHOD(Fixture, "an event about a bind that no longer waits has no effect") {
  asks = 0;
  step(true);
  event(Opened{77, 0});
  event(Proposed{77, true});
  event(Settled{kPort, 0});
  step(true);
  CHECK(proposed.empty());
  CHECK(questions.waiting().empty());
}

TEST_CASE_METHOD(Fixture, "the answer to an earlier question is no answer to the next one") {
  at_once = EADDRINUSE;
  step(true);
  asks = 78;
  event(Wanted{kPort, 78});
  at_once.reset();
  step(true);
  step(true);
  CHECK(proposed.size() == 1);
}
