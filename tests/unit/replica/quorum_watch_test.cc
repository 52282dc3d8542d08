// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/role/quorum_watch.h"

#include <catch2/catch.hpp>

using crane::consensus::QuorumStatus;
using crane::replica::QuorumWatch;
using Change = QuorumWatch::Change;

namespace {
constexpr std::int64_t kMs = 1'000'000;
}

TEST_CASE("quorum watch: a lost majority is reported at once", "[quorum]") {
  QuorumWatch watch;
  CHECK(watch.step({3, 3, true}, 1 * kMs) == Change::kNone);
  CHECK(watch.step({3, 2, true}, 2 * kMs) == Change::kNone);
  CHECK(watch.text("clients wait").empty());
  CHECK(watch.step({3, 1, false}, 3 * kMs) == Change::kLost);
  CHECK(watch.text("clients wait") == "no quorum: 1 of 3 replicas answer; clients wait");
  CHECK(watch.step({3, 1, false}, 4 * kMs) == Change::kNone);
  CHECK(watch.due_ns() == QuorumWatch::kNever);
  CHECK(watch.step({3, 2, false}, 5 * kMs) == Change::kNone);  // there is no leader yet
  CHECK(watch.step({3, 2, true}, 6 * kMs) == Change::kBack);
  CHECK(watch.text("clients wait").empty());
}

TEST_CASE("quorum watch: an election is waited for, but not forever", "[quorum]") {
  QuorumWatch watch;
  CHECK(watch.step({3, 3, true}, 1 * kMs) == Change::kNone);
  CHECK(watch.step({3, 2, false}, 20 * kMs) == Change::kNone);
  CHECK(watch.step({3, 2, true}, 40 * kMs) == Change::kNone);
  CHECK(watch.step({3, 2, false}, 60 * kMs) == Change::kNone);
  const std::int64_t due = watch.due_ns();
  CHECK(due == 40 * kMs + QuorumWatch::kNoLeaderNs);
  CHECK(watch.step({3, 2, false}, due - 1) == Change::kNone);
  CHECK(watch.step({3, 2, false}, due) == Change::kLost);
  CHECK(watch.text("clients wait") == "no leader: 2 of 3 replicas answer; clients wait");
}

TEST_CASE("quorum watch: at a start the others have time to connect", "[quorum]") {
  QuorumWatch watch;
  CHECK(watch.step({3, 1, false}, 1 * kMs) == Change::kNone);
  CHECK(watch.due_ns() == 1 * kMs + QuorumWatch::kStartNs);
  CHECK(watch.step({3, 1, false}, watch.due_ns()) == Change::kLost);
  QuorumWatch learner;  // it does not know the members yet
  CHECK(learner.step({0, 0, false}, 1 * kMs) == Change::kNone);
  CHECK(learner.step({0, 0, true}, 2 * kMs) == Change::kNone);
  CHECK(learner.step({3, 2, true}, 3 * kMs) == Change::kNone);
}
