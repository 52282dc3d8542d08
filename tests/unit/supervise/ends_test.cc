// SPDX-License-Identifier: Apache-2.0
// GOAL    Each exit status of a node has one meaning, and its text is readable.
// CHECKS  The table of ends, statuses without a row, texts.
#include "runtime/supervise/ends.h"

#include <signal.h>

#include <catch2/catch.hpp>

using namespace crane::supervise;
using crane::node::ExitStatus;
using crane::setup::Status;
using Kind = RestartLimiter::End;

TEST_CASE("ends: a known status has its meaning, another one means a failed node or replica",
          "[supervise]") {
  const auto of = [](ExitStatus status) { return end_of(crane::node::code(status)); };
  CHECK(of(ExitStatus::kNeverCheckedIn).status == Status::kNeverCheckedIn);
  CHECK(of(ExitStatus::kNoRoom).status == Status::kDiskFull);
  CHECK(of(ExitStatus::kNoListener).status == Status::kPortTaken);
  CHECK(of(ExitStatus::kUnhooked).never_returns);
  CHECK(of(ExitStatus::kHandedOver).hands_over);
  CHECK(of(ExitStatus::kBeginsAgain).begins_again);
  CHECK_FALSE(of(ExitStatus::kTooFarBehind).begins_again);
  for (const ExitStatus asked : {ExitStatus::kTooFarBehind, ExitStatus::kHandedOver,
                                 ExitStatus::kNoRoom, ExitStatus::kBeginsAgain}) {
    CHECK(of(asked).kind == Kind::kAsked);
  }
  for (const ExitStatus failed : {ExitStatus::kServerNotStarted, ExitStatus::kNeverCheckedIn,
                                  ExitStatus::kFenced, ExitStatus::kDisagrees}) {
    CHECK(of(failed).kind == Kind::kFailed);
  }
  for (const ExitStatus other : {ExitStatus::kDiverged, ExitStatus::kLagging,
                                 ExitStatus::kServerDied, ExitStatus::kLogFailed}) {
    CHECK(of(other).kind == Kind::kKilled);
  }
  CHECK(of(ExitStatus::kNoSegment).status == Status::kNodeFailed);
  CHECK(of(ExitStatus::kLogFailed).status == Status::kReplicaStopped);
  CHECK(end_of(0).status == Status::kNodeFailed);
  CHECK_FALSE(end_of(0).passes);
}

TEST_CASE("ends: a server's end is described in words", "[supervise]") {
  CHECK(how_ended(SIGKILL) == "killed by SIGKILL");
  CHECK(how_ended(3 << 8) == "ended with status 3");
  CHECK(how_ended(kUnseenEnd).find("only the crane-run that started it") != std::string::npos);
  CHECK(when_text(0) == "at once");
  CHECK(when_text(3'200) == "in 4 s");
}
