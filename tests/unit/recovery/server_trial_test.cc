// SPDX-License-Identifier: Apache-2.0
// GOAL    What a replica decides while its server is upgraded, or handed over to another build.
// METHOD  The machine with a shell that notes its actions, and answers as the test decides.
// CHECKS  HANDOVER-1, UPGRADE-1, UPGRADE-2, UPGRADE-3.
#include "tests/unit/recovery/server_change_shell.h"

using namespace crane;
using namespace crane::replica;
using namespace crane::replica::change;
using Fixture = ServerChangeTest;

TEST_CASE("change: an upgraded server that listens stays, and only then clients are let in",
          "[UPGRADE-1]") {
  Fixture f;
  f.on_trial();
  CHECK(f.look().empty());  // nothing of a server on trial is published
  CHECK(f.machine.holds_back(f.listen()));
  f.now_ns += 29 * kS;
  f.step(PutOut{f.listen()});  // just in time
  CHECK(f.look(ServerChange::kTrialNs - 1).empty());
  f.tick.may_lead = false;
  CHECK(f.look(1).empty());
  f.tick.may_lead = true;
  CHECK(f.look() == Names{"Propose"});
  CHECK(f.last.body.step == RestartBody::kKeep);
  CHECK(f.look(kS).empty());  // once per view
  CHECK(f.commit(RestartBody::kKeep, 20).empty());
  f.tick.view = View{512};
  CHECK(f.look().empty());  // not after it was committed either
  CHECK(f.machine.holds_back(f.listen()));
  CHECK(f.release_output.empty());
  CHECK(f.machine.awaits(Index{20}));
  CHECK(f.admit(20) == Names{"LetIn"});
  CHECK(f.release_output == std::vector<std::uint64_t>{80});
  CHECK_FALSE(f.machine.holds_back(f.listen()));
  CHECK(f.look() == Names{"Publish"});
}

TEST_CASE("change: a server that has not admitted its kKeep stays if the next one is requested",
          "[UPGRADE-3]") {
  Fixture f;
  f.on_trial();
  f.step(PutOut{f.listen()});
  CHECK(f.commit(RestartBody::kKeep, 20).empty());
  SECTION("for a restart") {
    CHECK(f.commit(RestartBody::kEnd, 30) == Names{"LetIn", "KeepFiles"});
    CHECK(f.commit(RestartBody::kBegin, 35) == Names{"NotePlace"});
    CHECK(f.machine.upgrade().state() == Upgrade::State::kKept);
  }
  SECTION("for another upgrade") {
    const Upgrade::Server third{{"/bin/third"}};
    CHECK(f.commit(RestartBody::kEnd, 30, Next{"", third, kNew, true}, 30) ==
          Names{"LetIn", "KeepFiles"});
    CHECK(f.machine.upgrade().state() == Upgrade::State::kAsked);
  }
  SECTION("for a hand-over") {
    CHECK(f.commit(RestartBody::kEnd, 30, Next{"crane-9", {}, {}, true}) ==
          Names{"LetIn", "KeepFiles"});
    CHECK(f.admit(20).empty());
    f.admit(30);
    f.step(EndedAtTurn{});
    CHECK(f.begin_at(35) == Names{"HandOver"});
  }
  CHECK(f.admit(20).empty());
}

TEST_CASE("change: the group leaves the files of a server that stays", "[change]") {
  Options o = options();
  o.keeps_files = true;
  Fixture f(o);
  f.on_trial();
  CHECK_FALSE(f.begun.leaves_files);
  f.commit(RestartBody::kKeep, 20);
  CHECK(f.admit(20) == Names{"LeaveFiles"});
  f.look();
  f.step(Packed{Index{15}, ""});
  f.end_at(30);
  f.begin_at(35);
  CHECK(f.begun.leaves_files);
}

TEST_CASE("change: an upgraded server that does not serve is rolled back", "[UPGRADE-2]") {
  Fixture f;
  f.on_trial();
  std::string why = "it ended by itself; see server.log";
  SECTION("it ends unasked") {
    CHECK(f.machine.expects_end());
    f.step(EndedAtTurn{});
    CHECK(f.look() == Names{"Propose"});
    CHECK(f.last.body.step == RestartBody::kBegin);
  }
  SECTION("the leader's server does, and so will this one") {
    CHECK(f.commit(RestartBody::kBegin, 25) == Names{"NotePlace"});
    f.tick.applied = Index{25};
    f.look();
  }
  SECTION("it does not listen in time") {
    CHECK(f.look().empty());
    CHECK(f.look(30 * kS - 1).empty());
    CHECK(f.look(1) == Names{"Propose"});
    CHECK(f.proposed.back() == Purpose::kEndOfTrial);
    CHECK(f.last.as_input);
    f.end_at(20);
    why = "it did not listen within 30 s";
  }
  if (!f.machine.holds_log()) {
    f.commit(RestartBody::kBegin, 25);
    f.tick.applied = Index{25};
    CHECK(f.look() == Names{"LookWhetherOver", "NoteServer"});
  }
  CHECK_FALSE(f.dead);
  f.step(EndedInKernel{"its files are not needed"});
  CHECK(f.look() == Names{"BeginServer", "ReleaseLog"});
  CHECK(f.begun.server == kOld);
  CHECK(f.begun.on_files_before);
  CHECK(f.machine.upgrade().why() == why);
  CHECK(f.logged == "entry 25: the upgrade is rolled back: " + why);
  CHECK(f.release_output.empty());
  CHECK(f.look() == Names{"Publish"});
}

TEST_CASE("change: a server that takes no turn is rolled back on all replicas", "[UPGRADE-2]") {
  Fixture f;
  f.on_trial();
  f.tick.may_lead = false;  // its server admits no START
  f.over = false;           // it is not even looked at
  f.step(FailedToStart{"no library"});
  SECTION("if none starts it") {
    CHECK(f.look() == Names{"Propose"});
    f.commit(RestartBody::kBegin, 25);
    CHECK(f.look() == Names{"NoteServer", "BeginServer", "ReleaseLog"});
    CHECK(f.dead);
    CHECK(f.begun.server == kOld);
    CHECK(f.begun.on_files_before);
  }
  SECTION("but the replica fails if others start it") {
    CHECK(f.commit(RestartBody::kKeep, 20) == Names{"Fail"});
    CHECK(f.failure.why.find("not on this one: no library") != std::string::npos);
  }
}

TEST_CASE("change: a replica with another program does not continue", "[change]") {
  Fixture f;
  CHECK(f.commit(RestartBody::kEnd, 10, Next{"", kNew, kOld, false}) == Names{"Fail", "KeepFiles"});
  CHECK(f.failure.cause == Fail::Cause::kDisagrees);
  CHECK_FALSE(f.machine.upgrade().open());
}

TEST_CASE("change: after a hand-over no server begins, and the node ends with its files kept",
          "[HANDOVER-1]") {
  Fixture f;
  f.tick.missed = Index{15};  // also a replica that recovered since
  f.end_at(10, Next{"crane-9", {}, {}, true});
  CHECK(f.begin_at(15) == Names{"HandOver"});
  CHECK(f.machine.handed_over());
  CHECK(f.machine.holds_log());
  CHECK(f.step(OperatorRequest{}) == Names{"Answer"});
  f.tick.runs = false;
  CHECK(f.look() == Names{"Publish"});
  CHECK(f.end.empty());
  SECTION("kept") {
    CHECK(f.step(Packed{Index{15}, ""}) == Names{"Published", "EndHandedOver"});
    CHECK(f.end ==
          "the server ended at entry 15, where another build of Crane continues "
          "(crane-9); its files are kept");
  }
  SECTION("not kept") {
    CHECK(f.step(Packed{Index{15}, "no room"}) == Names{"NotPublished", "EndHandedOver"});
    CHECK(f.end.find("its files are not kept: no room") != std::string::npos);
  }
  CHECK(f.machine.holds_log());
}

TEST_CASE("change: a replica that is no member hands nothing over", "[HANDOVER-1]") {
  Fixture f;
  f.tick.member = false;
  f.end_at(10, Next{"crane-9", {}, {}, true});
  CHECK(f.begin_at(15) == Names{"HandOver", "EndHandedOver"});
  CHECK(f.look().empty());
}

TEST_CASE("change: a leader judges each trial", "[UPGRADE-1]") {
  Fixture f;
  f.on_trial();
  f.look();
  CHECK(f.look(30 * kS) == Names{"Propose"});
  f.end_at(20);
  f.begin_at(25);
  f.look();
  f.step(Packed{Index{25}, ""});
  f.end_at(30, Next{"", kNew, kOld, true});
  f.begin_at(35);
  f.look();
  CHECK(f.look(29 * kS).empty());
  CHECK(f.look(kS) == Names{"Propose"});
  CHECK(f.proposed.back() == Purpose::kEndOfTrial);
}

TEST_CASE("change: the trial of a server that was rolled back does not affect the next one",
          "[UPGRADE-1]") {
  Fixture f;
  f.on_trial();
  f.step(PutOut{f.listen()});
  f.step(EndedAtTurn{});
  CHECK(f.begin_at(25) == Names{"BeginServer", "ReleaseLog"});
  f.look();
  f.step(Packed{Index{25}, ""});
  f.end_at(30, Next{"", kNew, kOld, true});
  f.begin_at(35);
  CHECK(f.look(ServerChange::kTrialNs).empty());  // it does not listen
  OutputHeader other = f.listen();
  other.conn = 81;
  f.step(PutOut{other});
  f.commit(RestartBody::kKeep, 40);
  f.admit(40);
  CHECK(f.release_output == std::vector<std::uint64_t>{81});
}

TEST_CASE("change: a node does not end before what it hands over is kept", "[HANDOVER-1]") {
  Fixture f;
  f.end_at(10);
  f.begin_at(15);
  CHECK(f.look() == Names{"Publish"});
  f.tick.publishes = false;  // the leader's was packed sooner
  f.end_at(20, Next{"crane-9", {}, {}, true});
  CHECK(f.begin_at(25) == Names{"HandOver"});
  CHECK(f.step(Packed{Index{15}, ""}) == Names{"Published"});
  f.tick.publishes = true;
  CHECK(f.look() == Names{"Publish"});
  CHECK(f.step(Packed{Index{25}, ""}) == Names{"Published", "EndHandedOver"});
}
