// SPDX-License-Identifier: Apache-2.0
// GOAL    Clients are read as fast as the leader's server and a majority's servers follow.
// METHOD  The test is the server, the followers and the clock.
// CHECKS  Pauses begin at a bound and end at half of it; FLOW-1; the reports of a returning
//         follower.
#include "proxy/replica/role/pacing.h"

#include <catch2/catch.hpp>
#include <vector>

#include "proxy/replica/role/tuning.h"

using namespace crane;
using namespace crane::replica;

namespace {

constexpr std::int64_t kMs = 1'000'000;

struct World {
  const std::vector<ReplicaId> others{ReplicaId{1}, ReplicaId{2}};
  ClientPacing pacing{100 * kMs};
  ClientPacing::Inputs seen;

  World() {
    seen.leads = true;
    seen.others = others;
    seen.voters = 3;
  }
  bool step(std::int64_t now_ns = kMs) {
    seen.paused = pacing.step(seen, now_ns).pause;
    return seen.paused;
  }
};

}  // namespace

TEST_CASE_METHOD(World, "a full pipeline pauses clients until half of it is free", "[pacing]") {
  seen.applied = Index{1};
  seen.proposed = Index{1 + kPipelineEntries};
  CHECK_FALSE(step());
  seen.proposed = Index{2 + kPipelineEntries};
  CHECK(step());
  seen.applied = Index{2 + kPipelineEntries / 2};
  CHECK(step());
  seen.applied = Index{3 + kPipelineEntries / 2};
  CHECK_FALSE(step());
}

TEST_CASE_METHOD(World, "bytes that the server has not admitted pause clients as well",
                 "[pacing]") {
  seen.waiting_bytes = kPipelineBytes + 1;
  CHECK(step());
  seen.waiting_bytes = kPipelineBytes / 2;
  CHECK(step());
  seen.waiting_bytes = kPipelineBytes / 2 - 1;
  CHECK_FALSE(step());
}

TEST_CASE_METHOD(World, "a consensus that takes no more pauses clients", "[pacing]") {
  seen.busy = true;
  CHECK(step());
  seen.busy = false;
  CHECK_FALSE(step());
}

TEST_CASE_METHOD(World, "a log without room pauses clients, and reports for how long", "[pacing]") {
  const std::int64_t now = 1'000 * kMs;
  seen.full = true;
  CHECK(step(now));
  CHECK(pacing.held_ns(now + 300 * kMs) == 300 * kMs);
  CHECK(step(now + 300 * kMs));
  CHECK(pacing.held_ns(now + 400 * kMs) == 400 * kMs);
  seen.full = false;
  CHECK_FALSE(step(now + 400 * kMs));
  CHECK(pacing.held_ns(now + 500 * kMs) == 0);
  seen.busy = true;  // consensus is busy, which is a different wait
  CHECK(step(now + 500 * kMs));
  CHECK(pacing.held_ns(now + 900 * kMs) == 0);
}

TEST_CASE_METHOD(World, "clients wait for a majority that is late, and the time is counted",
                 "[pacing][FLOW-1]") {
  std::int64_t now = 1'000 * kMs;
  for (std::uint64_t entry = 1; entry <= 1000; ++entry, now += kMs) {
    seen.applied = seen.proposed = Index{entry};
    pacing.on_report(ReplicaId{1}, {1, 0}, now);
    pacing.on_report(ReplicaId{2}, {1, 0}, now);
    step(now);
  }
  CHECK(seen.paused);
  CHECK(pacing.waits());
  CHECK(pacing.waited_ns() > 0);
  CHECK(pacing.held_ns(now) > 0);
  pacing.on_report(ReplicaId{1}, {1000, 0}, now);  // with it a majority is near
  CHECK_FALSE(step(now));
  CHECK_FALSE(pacing.waits());
}

TEST_CASE("a follower reports while it is behind, and that it recovers", "[pacing]") {
  std::vector<ProgressMessage> sent;
  ProgressReporter reporter;
  const auto step = [&](Index applied, std::int64_t now_ns) {
    if (const auto next = reporter.step(applied, false, now_ns); next.note) {
      sent.push_back(*next.note);
    }
  };
  reporter.recovers(42);
  std::int64_t now = 1'000 * kMs;
  for (std::uint64_t entry = 1; entry <= 2000; ++entry, now += kMs) {
    reporter.committed(Index{entry}, now);
    step(Index{1}, now);
  }
  REQUIRE_FALSE(sent.empty());
  CHECK(sent.back().applied == 1);
  CHECK(sent.back().recovers == 42);

  for (int i = 0; i < 10'000 && sent.back().recovers != 0; ++i, now += kMs) {
    reporter.committed(Index{2000 + static_cast<std::uint64_t>(i)}, now);
    step(Index{2000 + static_cast<std::uint64_t>(i)}, now);
    if (i % 1000 == 999) {  // another late entry makes it report again
      reporter.committed(Index{20'000}, now);
      now += 1'000 * kMs;
      step(Index{2000}, now);
      break;
    }
  }
  CHECK(sent.back().recovers == 0);
}
