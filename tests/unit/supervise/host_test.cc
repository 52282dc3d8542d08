// SPDX-License-Identifier: Apache-2.0
// GOAL    An agent's replica returns, stays drained, or leaves, according to the rules of the
//         group.
// METHOD  Only the state machine (runtime/supervise) with one replica of a group of several hosts.
// CHECKS  Which ends are temporary; drained and resumed; stopping, more firmly each time.
#include <catch2/catch.hpp>

#include "tests/unit/supervise/watched.h"

using namespace crane::supervise;
using crane::node::ExitStatus;
using From = Plan::From;

namespace {
void end(Watched& host, int status, bool drained = false) {
  host.step(NodeEnded{2, status << 8, drained, "its last line"});
}
void end(Watched& host, ExitStatus status, bool drained = false) {
  end(host, crane::node::code(status), drained);
}
}  // namespace

TEST_CASE("supervisor of a host: a temporary failure is recovered from, else it leaves",
          "[supervise][RETURN-1]") {
  for (const ExitStatus passes :
       {ExitStatus::kServerNotStarted, ExitStatus::kNeverCheckedIn, ExitStatus::kServerDied,
        ExitStatus::kFenced, ExitStatus::kLagging, ExitStatus::kDiverged, ExitStatus::kTooFarBehind,
        ExitStatus::kHandedOver, ExitStatus::kNoRoom, ExitStatus::kBeginsAgain}) {
    Watched host(Watched::on_a_host());
    end(host.serve(), passes);
    CHECK(host.has_logged("its node ended with status " +
                          std::to_string(crane::node::code(passes)) +
                          ": its last line; it recovers"));
    host.wait();
    CHECK(host.last<StartNode>().plan.from == From::kStore);
    CHECK(host.count<Leave>() == 0);
  }
  for (const ExitStatus stays :
       {ExitStatus::kStopped, ExitStatus::kLeftGroup, ExitStatus::kUnhooked, ExitStatus::kDisagrees,
        ExitStatus::kNoListener}) {
    Watched host(Watched::on_a_host());
    end(host.serve(), stays);
    CHECK(host.last<Leave>().wait == crane::node::code(stays) << 8);
    CHECK(host.machine.over());
    host.tick(60'000);
    CHECK(host.count<StartNode>() == 0);
  }
}

TEST_CASE("supervisor of a host: a node killed before it served counts as a failed start",
          "[supervise]") {
  Watched host(Watched::on_a_host());
  host.step(Start{});
  CHECK(host.last<StartNode>().plan.from == From::kBeginning);
  host.kill(2);
  CHECK(host.count<Leave>() == 1);
}

TEST_CASE("supervisor of a host: a node that cannot be started gives up at first, retries later",
          "[supervise][RETURN-1]") {
  Watched first(Watched::on_a_host());
  first.cannot_start = {2};
  first.step(Start{});
  CHECK(first.last<GiveUp>().why.error().text == "no process");
  CHECK(first.machine.over());
  Watched later(Watched::on_a_host());
  later.serve().kill(2);
  later.cannot_start = {2};
  later.tick();
  later.wait();
  CHECK(later.machine.deadline_ms() - later.now_ms == 2'000);
  later.cannot_start.clear();
  later.wait();
  CHECK(later.at(2).runs);
}

TEST_CASE("supervisor of a host: pauses grow, and an operator ends them", "[supervise]") {
  Watched host(Watched::on_a_host());
  host.serve();
  for (int i = 0; i < 3; ++i) {
    host.kill(2);
    if (i < 2) host.wait();
  }
  CHECK(
      host.has_logged("; it recovers, in 2 s; crane-ctl replica resume 2 on this host starts it"));
  host.forget().step(Resume{2, true});
  CHECK(host.last<Answer>().text == "replica 2 is started");
  host.tick();
  CHECK(host.last<StartNode>().plan.forgets);  // the request counts, as if it were drained
}

TEST_CASE("supervisor of a host: a drained replica stays so until an operator resumes it",
          "[supervise][SUP-3]") {
  Watched host(Watched::on_a_host());
  end(host.serve(), 0, true);
  CHECK(host.last<StaysDrained>().why.empty());
  CHECK(host.machine.deadline_ms() == Supervisor::kNever);
  CHECK_FALSE(host.machine.over());
  host.step(Resume{2, false});
  CHECK(host.last<StartNode>().plan.from == From::kStore);
  CHECK(host.count<BroughtBack>() == 1);
  CHECK(host.last<Answer>().error == std::string());
  host.step(Resume{2, false});
  CHECK(host.last<Answer>().error == std::string("busy"));
}

TEST_CASE("supervisor of a host: a replica that is killed while it drains is drained",
          "[supervise][SUP-3]") {
  Watched host(Watched::on_a_host());
  host.serve().step(NodeEnded{2, SIGKILL, true, ""});
  host.tick();
  CHECK(host.count<StaysDrained>() == 1);
  CHECK(host.count<StartNode>() == 0);
}

TEST_CASE("supervisor of a host: after a failed resume the replica is drained as before",
          "[supervise]") {
  Watched host(Watched::on_a_host());
  end(host.serve(), 0, true);
  host.step(Resume{2, true});
  end(host, 119);
  CHECK(host.last<StaysDrained>().why == "its node ended with status 119: its last line");
  CHECK(host.at(2).resume_failure == host.last<StaysDrained>().why);
  host.step(Resume{2, false});
  CHECK(host.at(2).resume_failure.empty());
  CHECK(host.last<StartNode>().plan.forgets);  // no node has read that yet (SUP-4)
  host.step(Reported{2, Report::kServes});
  end(host, 119);
  CHECK(host.count<Leave>() == 1);  // it had recovered
  Watched none(Watched::on_a_host());
  end(none.serve(), 0, true);
  none.cannot_start = {2};
  none.step(Resume{2, false});
  CHECK(none.last<Answer>().error == std::string("failed"));
  CHECK(none.last<StaysDrained>().why == "no process");
  CHECK(none.count<BroughtBack>() == 0);
}

TEST_CASE("supervisor of a host: each stop is firmer than the one before", "[supervise][SUP-2]") {
  Watched host(Watched::on_a_host());
  host.serve().step(Stop{nullptr, SIGINT});
  host.step(Stop{nullptr, SIGTERM});  // once is enough
  CHECK(host.count<EndNode>() == 1);
  std::vector<int> signals{host.last<EndNode>().signal};
  for (int i = 0; i < 2; ++i) {
    host.wait();
    signals.push_back(host.last<EndNode>().signal);
  }
  CHECK(signals == std::vector{SIGINT, SIGTERM, SIGKILL});
  CHECK(host.now_ms == 1'016'000);
  host.step(Resume{2, false});
  CHECK(host.last<Answer>().error == std::string("stopping"));
  host.kill(2);
  CHECK(host.last<Leave>().wait == SIGKILL);
}

TEST_CASE("supervisor of a host: a kill takes effect at once", "[supervise]") {
  Watched host(Watched::on_a_host());
  SECTION("while it runs") { host.serve().step(Kill{}); }
  SECTION("while it stops") {
    host.serve().step(Stop{nullptr, SIGINT});
    host.step(Kill{});
  }
  CHECK(host.last<EndNode>().signal == SIGKILL);
}

TEST_CASE("supervisor of a host: without a node a stop takes effect at once", "[supervise]") {
  Watched drained(Watched::on_a_host()), away(Watched::on_a_host()), fresh(Watched::on_a_host());
  end(drained.serve(), 0, true);
  drained.step(Stop{nullptr, SIGINT});
  CHECK(drained.count<Leave>() == 1);
  away.serve().kill(2);
  away.step(Stop{nullptr, SIGINT});
  CHECK(away.last<Leave>().wait == SIGKILL);
  CHECK(away.count<RemoveNotice>() == 1);
  away.tick();
  CHECK(away.count<StartNode>() == 0);
  fresh.step(Stop{nullptr, SIGINT});
  CHECK(fresh.last<GiveUp>().why.ok());
}
