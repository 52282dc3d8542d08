// SPDX-License-Identifier: Apache-2.0
// GOAL    A group ends when its servers end, and not because one of them did.
// METHOD  Only the state machine (runtime/supervise); the test carries out its actions.
// CHECKS  SUP-5; the group's status; servers that end late, differently, alone, or at a request.
#include <catch2/catch.hpp>

#include "tests/unit/supervise/watched.h"

using namespace crane::supervise;
using crane::node::ExitStatus;

TEST_CASE("supervisor: a server that ends normally ends the group with its status", "[supervise]") {
  Watched group;
  group.serve().step(ServerExit{0, 3});
  CHECK_FALSE(group.machine.stopping());
  group.step(Reported{1, Report::kAcceptorOnly});  // it has no server that could end
  group.step(ServerExit{2, 3});
  CHECK(group.machine.stopping());
  CHECK(group.machine.status() == 3);
  CHECK(group.has_logged("the server ended with status 3; its log: /d/r2/server.log"));
}

TEST_CASE("supervisor: a server that goes to the background is distinguished from one that ends",
          "[supervise]") {
  Watched group;
  group.serve();
  for (const int k : {0, 1, 2}) group.step(ServerExit{k, 0, ExitReason::kBackground});
  CHECK(group.machine.status() == 125);
  CHECK(group.has_logged("run it in the foreground"));
  Watched watched;
  watched.serve().step(Stop{"told to stop"});
  for (const int k : {0, 1, 2}) watched.step(ServerExit{k, 0, ExitReason::kBackground});
  CHECK(watched.machine.status() == 0);
}

TEST_CASE("supervisor: the other servers get 10 s, and a lost node is not waited for",
          "[supervise][SUP-S5]") {
  Watched slow, lost;
  slow.serve().step(ServerExit{0, 139, ExitReason::kSignal});
  slow.step(ServerExit{2, 139, ExitReason::kSignal});
  slow.wait();
  CHECK(slow.now_ms == 1'010'000);
  CHECK(slow.has_logged("the other replicas did not end, stopping"));
  lost.serve().step(ServerExit{0, 139, ExitReason::kSignal});
  lost.step(ServerExit{1, 1});
  CHECK(lost.has_logged("the servers ended differently"));
  lost.kill(2);
  CHECK_FALSE(lost.machine.stopping());
  lost.step(NodeEnded{.replica = 0});  // its server had ended: judged again
  CHECK(lost.machine.stopping());
  CHECK(lost.has_logged("the server crashed at the same place"));
}

TEST_CASE("supervisor: a replica whose server alone ended returns", "[supervise][SUP-5]") {
  Watched group;
  group.serve();
  SECTION("the others do not end in time") {
    const bool another_lost = GENERATE(false, true), node_killed = GENERATE(false, true);
    if (another_lost) group.kill(2);
    group.step(ServerExit{0, 139, ExitReason::kSignal});
    if (node_killed) group.kill(0);
    group.tick(10'000);
    CHECK(group.count<EndNode>() == (node_killed ? 0 : 1));
    if (!node_killed) group.step(NodeEnded{.replica = 0});
    CHECK(group.has_logged("its server ended with status 139, and the servers of the others did"));
  }
  SECTION("its node finds that it differs from the others") {
    group.step(ServerExit{0, 139, ExitReason::kSignal});
    group.fail(0, ExitStatus::kDiverged);
  }
  CHECK_FALSE(group.machine.stopping());
  group.forget();
  group.tick(2'000);
  CHECK(group.last<StartNode>().replica == 0);
  group.tick(10'000);  // nor later
  CHECK_FALSE(group.machine.stopping());
}

TEST_CASE("supervisor: servers that end alone each time return each time", "[supervise][SUP-5]") {
  Watched group;
  group.serve();
  for (const int replica : {0, 1, 0}) {
    group.step(ServerExit{replica, 139, ExitReason::kSignal});
    group.tick(10'000);
    group.step(NodeEnded{.replica = replica});
    group.forget();
    group.tick(60'000);
    CHECK(group.last<StartNode>().replica == replica);
    group.step(Reported{replica, Report::kReady});
    group.step(Reported{replica, Report::kCaughtUp});
  }
  CHECK_FALSE(group.machine.stopping());
  CHECK(group.machine.status() == 0);  // that of the group, not of the server that ended
}

TEST_CASE("supervisor: a group whose servers end one after the other ends", "[supervise][SUP-5]") {
  Watched group;
  group.serve().step(ServerExit{0, 139, ExitReason::kSignal});
  group.tick(10'000);
  group.step(NodeEnded{.replica = 0});
  group.tick(2'000);
  group.step(Reported{0, Report::kReady});              // but it has not caught up
  group.step(ServerExit{1, 139, ExitReason::kSignal});  // at the same place, without its leader
  CHECK_FALSE(group.machine.stopping());
  group.tick(10'000);
  CHECK(group.machine.stopping());
}

namespace {

Settings lasting_group() {
  Settings settings = Watched::group_of(3);
  settings.keeps_files = true;
  settings.stop_signal = 15;
  return settings;
}

}  // namespace

TEST_CASE("supervisor: servers with lasting files end at one turn, or are stopped after 20 s",
          "[supervise]") {
  Watched group(lasting_group());
  group.serve().step(Stop{"told to stop"});
  CHECK(group.last<SignalServers>().leader == 0);
  CHECK(group.count<EndNode>() == 0);
  Watched ended = group;
  for (const int k : {0, 1, 2}) ended.step(ServerExit{k, 128 + 15, ExitReason::kSignal});
  CHECK(ended.machine.status() == 0);  // as requested
  group.wait();
  CHECK(group.now_ms == 1'020'000);
  CHECK(group.has_logged("the server did not end within 20 s, stopping"));
}

TEST_CASE("supervisor: each leader gets the request to end the servers, until one has ended",
          "[supervise]") {
  Watched group(lasting_group());
  group.serve();
  SECTION("the leader is lost with the request") { group.step(Stop{"told to stop"}); }
  SECTION("the request comes during an election") {
    group.step(Role{0, false, 1});
    group.step(Stop{"told to stop"});
    CHECK(group.count<SignalServers>() == 0);
  }
  const auto sent = group.count<SignalServers>();
  group.step(Role{1, true, 2});
  CHECK(group.count<SignalServers>() == sent + 1);
  CHECK(group.last<SignalServers>().leader == 1);
  CHECK(group.count<EndNode>() == 0);
  group.step(ServerExit{1, 0, ExitReason::kExited});
  group.step(Role{2, true, 3});
  CHECK(group.count<SignalServers>() == sent + 1);
}

TEST_CASE("supervisor: without a majority, servers with lasting files are stopped at once",
          "[supervise]") {
  Watched group(lasting_group());
  group.serve();
  for (const int k : {0, 1}) group.step(NodeEnded{.replica = k, .wait = SIGKILL});
  group.step(Stop{"told to stop"});
  CHECK(group.count<SignalServers>() == 0);
  CHECK(group.last<EndNode>().replica == 2);
}
