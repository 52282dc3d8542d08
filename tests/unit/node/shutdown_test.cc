// SPDX-License-Identifier: Apache-2.0
// GOAL    A node leaves when it has nothing left to do, or at once when it failed. The server's end
//         is reported as a shell reports it.
// METHOD  Shutdown and ServerExit with the test's clock.
// CHECKS  STOP-1, END-1; waiting for silence, the longest wait, lingering.
#include "proxy/host/shutdown.h"

#include <catch2/catch.hpp>
#include <csignal>

#include "proxy/host/server_exit.h"

using namespace crane;
using namespace crane::node;

namespace {
constexpr std::int64_t kNow = 1'000'000'000'000;
}  // namespace

TEST_CASE("a stop waits until the server has been quiet", "[shutdown]") {
  Shutdown end;
  end.request(kNow, false);
  end.step(kNow + Shutdown::kSettleNs - 1);
  CHECK_FALSE(end.done());
  end.observe(false, Index{7}, kNow + Shutdown::kSettleNs - 1);  // it has made progress
  end.step(kNow + Shutdown::kSettleNs);
  CHECK_FALSE(end.done());
  end.step(kNow + 2 * Shutdown::kSettleNs);
  CHECK(end.done());
  CHECK(end.in_order());
}

TEST_CASE("a stop of a busy server ends after a time limit", "[shutdown]") {
  Shutdown end;
  end.request(kNow, false);
  CHECK(end.due_ns(kNow) <= kNow + Shutdown::kSettleNs);
  for (std::int64_t t = kNow; t < kNow + Shutdown::kStopNs; t += 10'000'000) {
    end.observe(true, Index{1}, t);
    end.step(t);
    REQUIRE_FALSE(end.done());
  }
  end.observe(true, Index{1}, kNow + Shutdown::kStopNs);
  end.step(kNow + Shutdown::kStopNs);
  CHECK(end.done());
}

TEST_CASE("if the server has ended, the node does not wait", "[shutdown]") {
  Shutdown end;
  end.request(kNow, true);
  end.step(kNow);
  CHECK(end.done());
}

TEST_CASE("the first failure is the one that is reported", "[shutdown][STOP-1]") {
  Shutdown end;
  CHECK(end.fail(ExitStatus::kFenced));
  CHECK_FALSE(end.fail(ExitStatus::kServerDied));
  CHECK(end.result() == ExitStatus::kFenced);
  CHECK_FALSE(end.in_order());
}

TEST_CASE("a node lingers after its server's end for the given time only", "[shutdown]") {
  Shutdown end;
  end.linger_until(kNow + 5);
  end.step(kNow + 4);
  CHECK_FALSE(end.done());
  end.step(kNow + 5);
  CHECK(end.done());
}

TEST_CASE("the server's status is reported once the kernel has ended it", "[shutdown][END-1]") {
  ServerExit exit;
  exit.at_turn(3 << 8, 2);
  CHECK(exit.exited());
  CHECK(exit.code() == 0);
  exit.report();
  CHECK(exit.reported());
  CHECK(exit.code() == 3);
  CHECK_FALSE(exit.in_background());  // it has failed, regardless of what it leaves running

  ServerExit killed;
  killed.at_turn(SIGSEGV, 0);
  killed.report();
  CHECK(killed.by_signal());
  CHECK(killed.code() == 128 + SIGSEGV);

  ServerExit daemon;
  daemon.at_turn(0, 1);
  CHECK(daemon.in_background());
  daemon.at_turn(0, 0);
  CHECK_FALSE(daemon.in_background());
}
