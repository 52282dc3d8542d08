// SPDX-License-Identifier: Apache-2.0
// GOAL    What a replica decides while its server is ended and another one takes over its files.
// METHOD  The machine with a shell that notes its actions, and answers as the test decides.
// CHECKS  RESTART-1, RESTART-2, RESTARTER-1, RESTARTER-2.
#include "tests/unit/recovery/server_change_shell.h"

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::change;
using Fixture = ServerChangeTest;

TEST_CASE("change: another server follows one that has ended, and its state is published",
          "[RESTARTER-1][RESTART-2]") {
  Fixture f;
  CHECK(f.look().empty());
  CHECK(f.machine.deadline_ns() == kNever);
  f.end_at(10);
  CHECK(f.machine.under_way());
  CHECK_FALSE(f.machine.holds_log());
  CHECK(f.look() == Names{"Propose"});
  CHECK(f.machine.deadline_ns() == f.now_ns + ServerChange::kWaitNs);
  CHECK(f.begin_at(15) == Names{"BeginServer", "ReleaseLog"});
  CHECK_FALSE(f.begun.server);
  CHECK_FALSE(f.begun.on_files_before);
  CHECK(f.machine.busy());  // until it is published
  f.tick.runs = false;
  CHECK(f.look().empty());
  f.tick.runs = true;
  f.tick.publishes = false;
  CHECK(f.look().empty());
  f.tick.publishes = true;
  CHECK(f.look() == Names{"Publish"});
  CHECK_FALSE(f.machine.busy());
  CHECK(f.step(Packed{Index{15}, ""}) == Names{"Published"});
  CHECK(f.published == std::vector{Index{15}});
  CHECK(f.look().empty());
}

TEST_CASE("change: nothing of a previous process, or of a replica that is no member, is published",
          "[change]") {
  Fixture f;
  SECTION("of a previous process") { f.tick.missed = Index{15}; }
  SECTION("of a replica that is no member") { f.tick.member = false; }
  f.end_at(10);
  CHECK(f.begin_at(15) == Names{"BeginServer", "ReleaseLog"});
  CHECK(f.look().empty());
  CHECK_FALSE(f.machine.busy());
}

TEST_CASE("change: a checkpoint that cannot be packed is reported", "[change]") {
  Fixture f;
  f.end_at(10);
  f.begin_at(15);
  SECTION("at once") {
    f.cannot_pack = "no room";
    CHECK(f.look() == Names{"Publish", "NotPublished", "AbandonPacking"});
  }
  SECTION("later") {
    CHECK(f.look() == Names{"Publish"});
    CHECK(f.step(Packed{Index{15}, "no room"}) == Names{"NotPublished"});
  }
  CHECK(f.not_published == std::vector{Index{15}});
}

TEST_CASE("change: a server that does not end is ended when none of its operations is half done",
          "[RESTARTER-2]") {
  Fixture f;
  f.commit(RestartBody::kEnd, 10);
  f.admit(10);
  CHECK(f.look().empty());
  CHECK(f.look(ServerChange::kEndNs - 1).empty());
  CHECK(f.look(1) == Names{"Propose"});
  CHECK(f.logged == "the server does not end: it is killed");
  f.commit(RestartBody::kBegin, 15);
  CHECK(f.look().empty());  // it has not reached the entry
  CHECK(f.machine.deadline_ns() == f.now_ns + ServerChange::kLookNs);
  f.tick.applied = Index{15};
  f.over = false;
  for (int i = 0; i < 10; ++i) CHECK(f.look() == Names{"LookWhetherOver"});
  f.over = true;
  SECTION("and another one begins") {
    CHECK(f.look() == Names{"LookWhetherOver", "NoteServer", "EndServer"});
    CHECK(f.look().empty());
    CHECK(f.machine.expects_kernel_end());
    CHECK(f.step(EndedInKernel{}).empty());
    CHECK(f.look() == Names{"BeginServer", "ReleaseLog"});
  }
  SECTION("or cannot be ended") {
    f.cannot_end = "no pipe";
    CHECK(f.look() == Names{"LookWhetherOver", "NoteServer", "EndServer", "Fail"});
    CHECK(f.failure.why == "the server cannot be ended: no pipe");
  }
}

TEST_CASE("change: a replica whose server cannot continue fails", "[change]") {
  Fixture f;
  f.end_at(10);
  f.commit(RestartBody::kBegin, 15);
  f.tick.applied = Index{15};
  f.look();
  SECTION("its files are not kept") {
    f.step(EndedInKernel{"no room"});
    CHECK(f.look() == Names{"Fail"});
    CHECK(f.failure.cause == Fail::Cause::kServerNotStarted);
  }
  SECTION("there is no segment") {
    f.cannot_begin = "no room";
    f.step(EndedInKernel{});
    CHECK(f.look() == Names{"BeginServer", "Fail"});
    CHECK(f.failure.cause == Fail::Cause::kNoSegment);
  }
  SECTION("the replica has reached its end") {
    f.tick.done = true;
    f.look();
    f.step(EndedInKernel{});
    CHECK(f.look().empty());
  }
}

TEST_CASE("change: an unrequested end has no effect", "[change]") {
  Fixture f;
  CHECK_FALSE(f.machine.expects_end());
  CHECK_FALSE(f.machine.expects_kernel_end());
  f.step(EndedAtTurn{});
  f.step(EndedInKernel{});
  f.step(FailedToStart{"no library"});
  f.step(Looked{true});
  f.step(PutOut{f.listen()});
  CHECK(f.commit(RestartBody::kKeep, 3).empty());
  CHECK(f.commit(RestartBody::kBegin, 4).empty());
  CHECK(f.look().empty());
  CHECK_FALSE(f.machine.busy());
  f.end_at(10);  // and that server is not gone
  f.commit(RestartBody::kBegin, 15);
  f.tick.applied = Index{15};
  CHECK(f.look() == Names{"LookWhetherOver", "NoteServer"});
  CHECK(f.machine.holds_log());
}

TEST_CASE("change: a server's end is requested once per view, by a leader", "[RESTART-1]") {
  Fixture f;
  f.tick.may_lead = false;
  f.end_at(10);
  CHECK(f.look().empty());
  f.tick.may_lead = true;
  f.busy = "not now";
  CHECK(f.look() == Names{"Propose"});
  f.busy.clear();
  CHECK(f.look() == Names{"Propose"});
  CHECK(f.look().empty());
  f.tick.view = View{512};
  CHECK(f.look() == Names{"Propose"});
  CHECK(f.look().empty());
  CHECK(f.proposed == std::vector{Purpose::kBegin, Purpose::kBegin});
  CHECK_FALSE(f.last.as_input);
  f.begin_at(15);
  f.look();
  f.end_at(20);  // another server, in the same view
  CHECK(f.look() == Names{"Propose"});
}

TEST_CASE("change: an operator's request is answered", "[change]") {
  Fixture f;
  CHECK(f.step(OperatorRequest{OperatorRequest::For::kRestart}) == Names{"Propose", "Answer"});
  CHECK(f.answer.refusal == nullptr);
  CHECK(f.answer.text ==
        "the server of every replica ends at entry 7, and starts again on its files");
  CHECK(f.last.as_input);
  CHECK(f.last.body.step == RestartBody::kEnd);
  CHECK(f.step(OperatorRequest{OperatorRequest::For::kUpgrade, "", "next", 5}) ==
        Names{"Propose", "Answer"});
  CHECK(f.answer.text == "the server of every replica ends at entry 7");
  CHECK(f.last.next == "next");
  CHECK(f.last.body.patience_s == 5);
  f.busy = "not the leader";
  f.step(OperatorRequest{OperatorRequest::For::kHandOver, "", "next"});
  CHECK(std::string(f.answer.refusal) == "busy");
  CHECK(f.answer.text == "not the leader");
}

TEST_CASE("change: an impossible request is refused, and not proposed", "[change]") {
  Options o = options();
  OperatorRequest asked{OperatorRequest::For::kRestart};
  std::string refusal = "unsupported";
  bool busy = false;
  SECTION("restarts are not allowed") { o.restarts = false; }
  SECTION("an upgrade without a container") {
    o.container = false;
    asked.kind = OperatorRequest::For::kUpgrade;
  }
  SECTION("a hand-over without a container") {
    o.container = false;
    asked.kind = OperatorRequest::For::kHandOver;
  }
  SECTION("a hand-over if the log ends with the nodes") {
    o.log_ends = true;
    asked.kind = OperatorRequest::For::kHandOver;
  }
  SECTION("a bad request") {
    asked = {OperatorRequest::For::kUpgrade, "no words"};
    refusal = "bad_argument";
  }
  SECTION("a request that is too long") {
    asked = {OperatorRequest::For::kUpgrade, "", std::string(kDataBytesMax, 'x')};
    refusal = "bad_argument";
  }
  SECTION("while another one is in progress") {
    busy = true;
    refusal = "busy";
  }
  Fixture f(o);
  if (busy) f.commit(RestartBody::kEnd, 10);
  CHECK(f.step(asked) == Names{"Answer"});
  REQUIRE(f.answer.refusal != nullptr);
  CHECK(f.answer.refusal == refusal);
}

TEST_CASE("change: nothing is requested while a checkpoint is being packed", "[change]") {
  Fixture f;
  f.end_at(10);
  f.begin_at(15);
  f.look();
  CHECK(f.step(OperatorRequest{}) == Names{"Answer"});
  f.step(Packed{Index{15}, ""});
  CHECK(f.step(OperatorRequest{}) == Names{"Propose", "Answer"});
}

TEST_CASE("change: the schedule requests a restart if CRIU refuses and clients sent something",
          "[change]") {
  Options o = options();
  o.every_ns = 10 * kS;
  Fixture f(o);
  f.tick.refused = true;
  f.tick.inputs = 3;
  CHECK(f.look().empty());
  CHECK(f.look(10 * kS - 1).empty());
  CHECK(f.look(1) == Names{"Propose"});
  CHECK(f.logged.find("a checkpoint is due, and CRIU refuses: the server of every") == 0);
  CHECK(f.proposed == std::vector{Purpose::kScheduled});
  CHECK(f.look(10 * kS).empty());  // no input since
  f.tick.inputs = 4;
  CHECK(f.look(9 * kS).empty());
  CHECK(f.look(kS) == Names{"Propose"});
  f.tick.inputs = 5;
  SECTION("CRIU does not refuse") { f.tick.refused = false; }
  SECTION("it does not lead") { f.tick.serves = false; }
  CHECK(f.look(20 * kS).empty());
}

TEST_CASE("change: the schedule counts from an operator's request", "[change]") {
  Options o = options();
  o.every_ns = 10 * kS;
  Fixture f(o);
  f.tick.refused = true;
  f.tick.inputs = 3;
  f.look();
  f.now_ns += 9 * kS;
  f.step(OperatorRequest{OperatorRequest::For::kRestart});
  CHECK(f.look(9 * kS).empty());
  CHECK(f.look(kS) == Names{"Propose"});
}

TEST_CASE("change: a place that was not published in time is given up for the next one",
          "[RESTART-2]") {
  Fixture f;
  f.tick.publishes = false;
  f.end_at(10);
  f.begin_at(15);
  f.end_at(20);
  f.commit(RestartBody::kBegin, 25);
  f.tick.publishes = true;
  CHECK(f.look().empty());
  f.tick.applied = Index{25};
  CHECK(f.look() == Names{"LookWhetherOver", "NoteServer"});
}
