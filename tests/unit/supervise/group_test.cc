// SPDX-License-Identifier: Apache-2.0
// GOAL    The replicas of a group have nodes when they should, and the group ends when it must.
// METHOD  Only the state machine (runtime/supervise); the test carries out its actions.
// CHECKS  Plans, pauses, requests and messages; SUP-1 to SUP-4; a second fault at each point.
#include <catch2/catch.hpp>

#include "tests/unit/supervise/watched.h"

using namespace crane::supervise;
using crane::node::ExitStatus;
using crane::setup::Status;
using crane::setup::status_of;
using From = Plan::From;

TEST_CASE("supervisor: a new group starts all its members, and serves when all are ready",
          "[supervise]") {
  Watched group(Watched::group_of(3, 1));
  group.step(Start{});
  group.step(Start{});
  CHECK(group.count<StartNode>() == 3);
  CHECK(group.last<StartNode>().plan.from == From::kBeginning);
  for (const int k : {0, 1}) group.step(Reported{k, Report::kReady});
  CHECK_FALSE(group.machine.serving());
  group.step(Reported{2, Report::kReady});
  CHECK(group.machine.serving());
  CHECK(group.said == "all replicas run\n");
}

TEST_CASE("supervisor: a node that ends before all have run ends the group", "[supervise]") {
  Watched group;
  group.step(Start{});
  group.fail(1, ExitStatus::kNeverCheckedIn);
  CHECK(group.machine.stopping());
  CHECK(group.count<EndNode>() == 2);
  CHECK(status_of(group.machine.problem()) == Status::kNeverCheckedIn);
  CHECK_FALSE(group.machine.has_served());
  for (const int k : {0, 2}) group.step(NodeEnded{.replica = k});
  CHECK(group.machine.over());
}

TEST_CASE("supervisor: a node that restarts at a checkpoint returns even before all have run",
          "[supervise]") {
  Watched group;
  group.step(Start{});
  group.fail(1, ExitStatus::kTooFarBehind);
  CHECK_FALSE(group.machine.stopping());
  group.tick();
  CHECK(group.last<StartNode>().plan.from == From::kCheckpoint);
}

TEST_CASE("supervisor: replicas that repeat a computation all return, even before they served",
          "[supervise]") {
  Watched group;
  group.step(Start{});
  for (const int k : {0, 1, 2}) group.fail(k, ExitStatus::kBeginsAgain);
  CHECK_FALSE(group.machine.stopping());
  group.tick();
  CHECK(group.count<StartNode>() == 6);
}

TEST_CASE("supervisor: a node that cannot be started ends a new group", "[supervise]") {
  Watched group;
  group.cannot_start = {1};
  group.step(Start{});
  CHECK(group.machine.stopping());
  CHECK(group.machine.problem().error().text == "no process");
}

TEST_CASE("supervisor: a message about a killed node names the kernel's OOM killer",
          "[supervise]") {
  const std::uint64_t kills = GENERATE(0, 2);
  const int wait = GENERATE(SIGKILL, SIGSEGV);
  Watched group;
  group.serve().step(NodeEnded{.replica = 1, .wait = wait, .oom_kills = kills});
  CHECK(group.has_logged("OOM killer has ended 2 processes") == (kills != 0 && wait == SIGKILL));
}

TEST_CASE("supervisor: a lost replica is started at once, from a checkpoint if one exists",
          "[supervise][RETURN-1]") {
  Watched group;
  group.serve().kill(2);
  CHECK(group.has_logged("killed by SIGKILL"));
  CHECK(group.has_logged("the group continues with 2 of 3 replicas"));
  CHECK(group.last<WriteNotice>().command == "crane-ctl replica resume 2");
  group.tick();
  CHECK(group.last<StartNode>().plan.from == From::kCheckpoint);
  CHECK(group.last<RemoveNotice>().replica == 2);
  CHECK(group.has_logged("replica 2 recovers from a checkpoint"));
  CHECK(group.count<AskCheckpoint>() == 0);
}

TEST_CASE("supervisor: without a checkpoint, the leader gets requests for one at intervals",
          "[supervise]") {
  Watched group;
  group.checkpoint = false;
  group.serve().step(Refused{"CRIU refuses it"});
  for (int i = 0; i < 3; ++i) {
    group.kill(2);
    group.wait();
  }
  CHECK(group.has_logged("runs all inputs again: there is no checkpoint, because CRIU refuses it"));
  CHECK(group.count<AskCheckpoint>() == 1);
  CHECK(group.last<AskCheckpoint>().leader == 0);
  group.now_ms += 5'000;
  group.kill(2);
  group.wait();
  CHECK(group.count<AskCheckpoint>() == 2);
  // Without a leader there is no request, until there is one again.
  group.now_ms += 5'000;
  group.kill(0);
  group.tick();
  CHECK(group.count<AskCheckpoint>() == 2);
  group.step(Role{1, true, 2});
  CHECK(group.count<AskCheckpoint>() == 3);
  CHECK(group.last<AskCheckpoint>().leader == 1);
  group.step(Role{0, true, 3});  // that request was made
  CHECK(group.count<AskCheckpoint>() == 3);
}

TEST_CASE("supervisor: a killed leader's own return requests a checkpoint of the next leader",
          "[supervise]") {
  Watched group;
  group.checkpoint = false;
  group.serve().kill(2);
  group.tick();
  CHECK(group.last<AskCheckpoint>().leader == 0);
  group.kill(0);  // at once, and with the request
  SECTION("elected after the return") {
    group.tick();
    group.step(Role{1, true, 2});
  }
  SECTION("elected before") {
    group.step(Role{1, true, 2});
    group.tick();
  }
  CHECK(group.count<AskCheckpoint>() == 2);
  CHECK(group.last<AskCheckpoint>().leader == 1);
}

TEST_CASE("supervisor: after a divergence a checkpoint is requested, and one second passes",
          "[supervise]") {
  Watched group;
  group.serve().fail(2, ExitStatus::kDiverged);
  CHECK(group.count<AskCheckpoint>() == 1);
  group.tick(999);
  CHECK(group.count<StartNode>() == 0);
  group.tick(1);
  CHECK(group.count<StartNode>() == 1);
}

TEST_CASE("supervisor: a node without disk space retries every 2 s, which is not a failure",
          "[supervise]") {
  Watched group;
  group.serve();
  for (int i = 0; i < 4; ++i) {
    group.fail(2, ExitStatus::kNoRoom);
    CHECK(group.machine.deadline_ms() - group.now_ms == 2'000);
    group.wait();
  }
  // As when its configuration cannot be written.
  group.cannot_start = {2};
  group.lacks = Status::kDiskFull;
  group.fail(2, ExitStatus::kNoRoom);
  group.wait();
  CHECK(group.machine.deadline_ms() - group.now_ms == 2'000);
}

TEST_CASE("supervisor: a node that cannot be restarted is retried with pauses",
          "[supervise][RETURN-1]") {
  Watched group;
  group.serve().fail(2, ExitStatus::kHandedOver);  // at once, if it could be started
  group.now_ms += 3'600'000;
  group.cannot_start = {2};
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 4; ++i) {
    group.wait();
    pauses.push_back(group.machine.deadline_ms() - group.now_ms);
  }
  CHECK(pauses == std::vector<std::int64_t>{0, 1'000, 2'000, 4'000});
  group.cannot_start.clear();
  group.wait();
  CHECK(group.at(2).runs);
}

TEST_CASE("supervisor: after a failure from kept state, every second attempt runs the log",
          "[supervise]") {
  Watched group;
  group.serve();
  std::vector<From> plans;
  for (int i = 0; i < 4; ++i) {
    group.fail(2, ExitStatus::kFenced);
    group.wait();
    plans.push_back(group.last<StartNode>().plan.from);
  }
  CHECK(plans == std::vector{From::kCheckpoint, From::kLog, From::kCheckpoint, From::kLog});
  CHECK(group.has_logged("runs all inputs again, as it did not recover from a checkpoint"));
  group.fail(2, ExitStatus::kHandedOver);  // the other build has not tried yet
  group.wait();
  CHECK(group.last<StartNode>().plan.from == From::kCheckpoint);
}

TEST_CASE("supervisor: nodes of a group on disk find their own state", "[supervise]") {
  Settings settings = Watched::group_of(3);
  settings.on_disk = true;
  Watched group(settings);
  group.serve().kill(1);
  group.tick();
  CHECK(group.last<StartNode>().plan.from == From::kStore);
  CHECK(group.count<LookForCheckpoint>() == 0);
}

TEST_CASE("supervisor: the end of a single replica ends the group, unless it is handed over",
          "[supervise]") {
  Watched lost(Watched::group_of(1));
  lost.serve().kill(0);
  CHECK(lost.machine.over());
  CHECK(status_of(lost.machine.problem()) == Status::kNodeFailed);
  Watched handed(Watched::group_of(1));
  handed.serve().fail(0, ExitStatus::kHandedOver);
  handed.tick();
  handed.kill(0);  // the other build does not come up, and may be replaced
  CHECK_FALSE(handed.machine.over());
  handed.wait();
  handed.step(Reported{0, Report::kListens});
  handed.kill(0);
  CHECK(handed.machine.over());
}

TEST_CASE("supervisor: the group ends if a majority fails five times without outside cause",
          "[supervise]") {
  const auto fails = [](Watched& group, ExitStatus status) {
    group.serve();
    for (int i = 0; i < 5; ++i) {
      for (const int k : {1, 2}) {
        if (group.machine.stopping()) return;
        group.fail(k, status);
        if (!group.machine.stopping()) group.wait();
      }
    }
  };
  Watched program, fenced, killed;
  fails(program, ExitStatus::kNeverCheckedIn);
  CHECK(status_of(program.machine.problem()) == Status::kNeverCheckedIn);
  fails(fenced, ExitStatus::kFenced);
  CHECK(status_of(fenced.machine.problem()) == Status::kMajorityLost);
  CHECK(fenced.machine.problem().error().text.find(
            "the replicas that were started again failed again") != std::string::npos);
  fails(killed, ExitStatus::kServerDied);
  CHECK_FALSE(killed.machine.stopping());
  Watched one, half(Watched::group_of(4));
  one.serve();
  for (int i = 0; i < 6; ++i) {
    one.fail(1, ExitStatus::kFenced);
    one.wait();
  }
  CHECK_FALSE(one.machine.stopping());
  fails(half, ExitStatus::kFenced);
  CHECK_FALSE(half.machine.stopping());
}

TEST_CASE("supervisor: strict mode ends the group at the first unhooked call", "[supervise]") {
  Watched group;
  group.serve().fail(1, ExitStatus::kUnhooked);
  CHECK(status_of(group.machine.problem()) == Status::kUnhooked);
  CHECK(group.machine.problem().error().text.find("without --strict") != std::string::npos);
}

TEST_CASE("supervisor: losing a second node while the first one starts does not delay either",
          "[supervise]") {
  Watched group;
  group.serve().kill(1);
  group.kill(2);
  CHECK(group.has_logged("the group waits: 1 of 3 replicas are left"));
  group.tick();
  CHECK(group.count<StartNode>() == 2);
  group.step(NodeEnded{.replica = 0, .wait = SIGKILL});
  group.tick();
  CHECK(group.count<StartNode>() == 3);
  CHECK_FALSE(group.machine.stopping());
}

TEST_CASE("supervisor: a drained replica has no node until an operator resumes it",
          "[supervise][SUP-3]") {
  Watched group;
  group.serve().step(Reported{2, Report::kDrained});
  group.kill(2);  // while it leaves
  CHECK(group.has_logged("replica 2 is drained; crane-ctl replica resume 2 brings it back"));
  CHECK(group.machine.role_of(group.at(2)) == std::string("drained"));
  CHECK(group.machine.deadline_ms() == Supervisor::kNever);
  group.tick(3'600'000);
  group.step(Members{0, {{0, true}, {1, true}, {2, true}}});
  CHECK(group.count<StartNode>() == 0);
  group.step(BringBack{2, {.from = From::kCheckpoint, .checkpoint = "1.7"}});
  CHECK(group.last<StartNode>().plan.checkpoint == "1.7");
  CHECK(group.has_logged("replica 2 is brought back"));
}

TEST_CASE("supervisor: an operator's request during the draining is kept", "[supervise][SUP-1]") {
  Watched group;
  group.serve().step(BringBack{2, {.from = From::kCheckpoint, .checkpoint = "1.3"}});  // it runs
  group.kill(2);
  group.tick();
  CHECK(group.last<StartNode>().plan.checkpoint.empty());
  group.forget().step(Reported{2, Report::kDrained});
  group.step(BringBack{2, {.from = From::kCheckpoint, .checkpoint = "1.7"}});
  CHECK(group.count<StartNode>() == 0);
  group.step(NodeEnded{.replica = 2});
  CHECK(group.last<StartNode>().plan.checkpoint == "1.7");
  CHECK(group.count<StartNode>() == 1);
}

TEST_CASE("supervisor: an operator's choice of checkpoint is kept if no process can be started",
          "[supervise]") {
  Watched group;
  group.serve().step(Reported{2, Report::kDrained});
  group.step(NodeEnded{.replica = 2});
  group.cannot_start = {2};
  group.step(BringBack{2, {.from = From::kCheckpoint, .checkpoint = "1.7"}});
  group.cannot_start.clear();
  group.wait();
  CHECK(group.last<StartNode>().plan.checkpoint == "1.7");
}

TEST_CASE("supervisor: an order to discard memory is kept until a node has opened its memory",
          "[supervise][SUP-4]") {
  Watched group;
  group.serve().step(Reported{2, Report::kDrained});
  group.step(NodeEnded{.replica = 2});
  group.step(BringBack{2, {.from = From::kCheckpoint, .forgets = true}});
  group.kill(2);  // before it has read that
  group.tick();
  CHECK(group.last<StartNode>().plan.forgets);
  group.step(Role{2, false, 1});
  group.kill(2);
  group.wait();
  CHECK_FALSE(group.last<StartNode>().plan.forgets);
}

TEST_CASE("supervisor: an operator's request does not wait for a planned return", "[supervise]") {
  Watched group;
  group.serve();
  for (int i = 0; i < 4; ++i) {
    group.kill(2);
    if (i < 3) group.wait();
  }
  CHECK(group.has_logged("replica 2 is started again in 4 s, after 4 ends in a row"));
  group.step(Resume{.replica = 2});
  CHECK(group.last<Answer>().text == "replica 2 is started");
  group.tick();
  CHECK(group.at(2).runs);
  group.step(Resume{.replica = 2});
  CHECK(group.last<Answer>().error == std::string("busy"));  // it runs
  group.step(Stop{"told to stop"});
  group.step(Resume{.replica = 2});
  CHECK(group.last<Answer>().error == std::string("busy"));
}

TEST_CASE("supervisor: a new member gets a node with an empty memory", "[supervise]") {
  Watched group(Watched::group_of(3, 1));
  group.serve();
  const Members with{0, {{0, true}, {1, true}, {2, true}, {3, false}}};
  group.step(Members{1, with.list});  // it does not lead
  CHECK(group.count<StartNode>() == 0);
  group.step(with);
  CHECK(group.last<StartNode>().plan.from == From::kCheckpoint);
  CHECK(group.last<StartNode>().plan.forgets);
  group.step(Members{0, {{0, true}, {1, true}, {2, true}, {3, true}}});
  CHECK(group.has_logged("replica 3 votes from now on"));
  CHECK(group.count<StartNode>() == 1);
}

TEST_CASE("supervisor: a member whose node could not be started at first gets it later",
          "[supervise][RETURN-1]") {
  Watched group(Watched::group_of(3, 1));
  group.serve().cannot_start = {3};
  group.step(Members{0, {{0, true}, {1, true}, {2, true}, {3, false}}});
  group.cannot_start.clear();
  group.wait();
  CHECK(group.at(3).runs);
  CHECK(group.last<StartNode>().plan.forgets);
}

TEST_CASE("supervisor: a removed member is not restarted, even if it was away", "[supervise]") {
  Watched group;
  group.serve().step(Reported{1, Report::kRemoved});
  group.step(NodeEnded{.replica = 1, .wait = 71 << 8});
  CHECK(group.has_logged("replica 1 has left the group"));
  group.kill(2);
  group.step(Members{0, {{0, true}}});
  CHECK(group.last<RemoveNotice>().replica == 2);
  CHECK(group.machine.deadline_ms() == Supervisor::kNever);
  group.tick(60'000);
  CHECK(group.count<StartNode>() == 0);
}

TEST_CASE("supervisor: facts about a replica that is no longer needed change nothing",
          "[supervise][SUP-S2][SUP-S3]") {
  Supervisor machine(Watched::group_of(3));
  for (const Event& event : std::vector<Event>{
           Start{}, Reported{0, Report::kReady}, Reported{1, Report::kReady},
           Reported{2, Report::kReady}, NodeEnded{.replica = 2, .wait = SIGKILL}, Tick{}}) {
    (void)machine.step(event, 10);
  }
  CHECK(machine.deadline_ms() == Supervisor::kNever);  // it waits for CheckpointLookup
  CHECK(machine.step(CheckpointLookup{9, true}, 10).empty());
  CHECK(machine.step(CheckpointLookup{1, true}, 10).empty());
  (void)machine.step(Stop{"told to stop"}, 10);
  CHECK(machine.step(CheckpointLookup{2, true}, 10).empty());
}

TEST_CASE("supervisor: an operator resumes a drained replica without a leader",
          "[supervise][SUP-3]") {
  Watched group(Watched::group_of(3, 1));
  group.serve().step(Reported{2, Report::kDrained});
  group.step(Resume{.replica = 2});
  CHECK(std::string(group.last<Answer>().error) == "busy");  // its node is about to end
  group.step(NodeEnded{.replica = 2, .drained = true});
  group.kill(0);
  group.kill(1);
  group.tick(30);
  CHECK(group.at(2).drained);
  group.forget().step(Resume{.replica = 2});
  CHECK(std::string(group.last<Answer>().error).empty());
  CHECK(group.last<StartNode>().replica == 2);
  CHECK_FALSE(group.last<StartNode>().plan.forgets);
  group.forget().step(Resume{.replica = 3});
  CHECK(std::string(group.last<Answer>().error) == "unsupported");
  CHECK(group.count<StartNode>() == 0);
}

TEST_CASE("supervisor: after Stop nodes end, and none is started", "[supervise][SUP-2]") {
  Watched group(Watched::group_of(3, 1));
  group.serve().kill(2);
  group.step(Stop{"told to stop"});
  CHECK(group.said.find("told to stop, stopping") != std::string::npos);
  CHECK(group.count<EndNode>() == 2);
  CHECK(group.last<EndNode>().signal == 0);
  group.tick();
  group.step(Members{0, {{0, true}, {1, true}, {2, true}, {3, false}}});
  group.step(BringBack{2, {}});
  CHECK(group.count<StartNode>() == 0);
  group.step(Stop{"told to stop"});  // requested twice
  CHECK(group.last<EndNode>().signal == SIGKILL);
  group.step(NodeEnded{.replica = 0});
  CHECK_FALSE(group.machine.over());
  group.forget().wait();
  CHECK(group.last<EndNode>().replica == 1);
  group.step(NodeEnded{.replica = 1});
  CHECK(group.machine.over());
  CHECK(group.machine.problem().ok());
}

TEST_CASE("supervisor: a node that starts during the stop is stopped", "[supervise]") {
  Supervisor machine(Watched::group_of(1));
  (void)machine.step(Start{}, 10);
  (void)machine.step(Stop{"told to stop"}, 10);
  const auto actions = machine.step(Started{0}, 10);
  REQUIRE(actions.size() == 1);
  CHECK(std::holds_alternative<EndNode>(actions[0]));
}

TEST_CASE("supervisor: a group that is taken over gets its lost nodes back",
          "[supervise][RETURN-1]") {
  using Node = Found::Node;
  Watched group(Watched::group_of(5, 1));
  group.step(Found{0, true, true, false, Node::kAnswers});
  group.step(Found{1, true, true, false, Node::kSilent});
  group.step(Found{2, true, true, true});    // drained
  group.step(Found{3, true, false, false});  // a learner
  group.step(Found{4, true, true, false});
  group.step(Found{5, false, false, false});
  group.step(TakeOver{});
  CHECK(group.has_logged("taking over group g, which had no crane-run: 1 nodes run"));
  group.tick();
  std::set<int> started;
  for (const auto& one : group.all<StartNode>()) started.insert(one.replica);
  CHECK(started == std::set{3, 4});
  // A silent replica has a node (SUP-1), whatever an operator requests.
  group.step(BringBack{1, {.from = From::kCheckpoint}});
  CHECK(group.count<StartNode>() == 2);
  group.step(NodeEnded{.replica = 1, .wait = kUnseenEnd});
  CHECK(group.has_logged("only the crane-run that started it could see how"));
  group.tick();
  CHECK(group.last<StartNode>().replica == 1);
}

TEST_CASE("supervisor: a silent node is killed at the second request to end its group",
          "[supervise]") {
  Watched group;
  group.step(Found{0, true, true, false, Found::Node::kSilent});
  group.step(TakeOver{.ends = true});
  group.step(Stop{"told to stop"});
  CHECK(group.last<EndNode>().signal == SIGKILL);
}

TEST_CASE("supervisor: a silent node of an ending group is stopped when it answers",
          "[supervise]") {
  Watched group;
  group.step(Found{0, true, true, false, Found::Node::kSilent});
  group.step(TakeOver{.ends = true});
  CHECK_FALSE(group.machine.over());
  group.step(Adopted{0});
  CHECK(group.last<EndNode>().signal == 0);
  group.step(NodeEnded{.replica = 0, .wait = kUnseenEnd});
  CHECK(group.machine.over());
}

TEST_CASE("supervisor: the analysis replica is added, returns, and is released", "[supervise]") {
  Settings settings = Watched::group_of(3, 1);
  settings.analysis = 3;
  settings.tool = "helgrind";
  Watched group(settings);
  group.serve().tick();
  CHECK(group.last<AskMember>().change == std::string("add"));
  const Members with{0, {{0, true}, {1, true}, {2, true}, {3, false}}};
  group.step(with);
  CHECK(group.last<StartNode>().plan.from == From::kBeginning);
  group.kill(3);
  CHECK_FALSE(group.has_logged("of 3 replicas"));
  group.tick();
  CHECK(group.has_logged("analysis replica 3 begins again"));
  group.fail(3, ExitStatus::kMissedEntries);
  CHECK(group.last<AnalysisReleased>().why.find("it says why") != std::string::npos);
  group.tick(500);
  CHECK(group.last<AskMember>().change == std::string("remove"));
  CHECK_FALSE(group.machine.stopping());
}

TEST_CASE("supervisor: without a process for the analysis replica, it is released", "[supervise]") {
  Settings settings = Watched::group_of(3, 1);
  settings.analysis = 3;
  Watched group(settings);
  group.serve().cannot_start = {3};
  group.step(Members{0, {{0, true}, {1, true}, {2, true}, {3, false}}});
  CHECK(group.last<AnalysisReleased>().why == "no process");
}

TEST_CASE("supervisor: a leader of an older view no longer leads", "[supervise]") {
  Watched group;
  group.serve().step(Role{1, true, 2});
  CHECK(group.machine.leader() == 1);
  CHECK(group.machine.summary() == "g: 3 of 3 replicas run, replica 1 leads");
  group.kill(1);
  CHECK(group.machine.leader() == -1);
}

TEST_CASE("supervisor: a late message of a lost replica changes nothing", "[supervise][SUP-S4]") {
  Watched group;
  group.serve().kill(2);
  const auto actions = group.done.size();
  group.kill(2);
  CHECK(group.done.size() == actions);
  group.step(Role{2, true, 9});
  CHECK(group.machine.leader() == 0);
}
