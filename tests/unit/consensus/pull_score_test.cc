// SPDX-License-Identifier: Apache-2.0
// CHECKS  CORE-E1..E3:bounds of the score, when it changes its verdict, a single miss.
#include "consensus/core/pull_score.h"

#include <catch2/catch.hpp>

#include "consensus/core/transitions.h"

using namespace crane::consensus::core;
using crane::consensus::Role;

namespace {

int misses_to_suspicion(PullScore score) {
  int misses = 0;
  while (score.alive()) {
    score.miss();
    ++misses;
  }
  return misses;
}

}  // namespace

TEST_CASE("pull-score: one missed heartbeat never suspects a live leader (E3)", "[election]") {
  PullScore score;
  for (int i = 0; i < 1000; ++i) {
    score.miss();
    CHECK(score.alive());
    score.hit();
    score.hit();
  }
}

TEST_CASE("pull-score: a dead leader is suspected after a bounded number of misses", "[election]") {
  const PullScore score;
  CHECK(misses_to_suspicion(score) >= 3);
  CHECK(misses_to_suspicion(score) <= kMissesBase);
}

TEST_CASE("pull-score: two looks at a stopped leader suspect it, however noisy it was (E3)",
          "[election]") {
  PullScore score;
  for (int i = 0; i < 30; ++i) score.miss();
  for (int i = 0; i < 40; ++i) score.hit();
  REQUIRE(score.noise() > kMissesBase);
  score.stopped();
  CHECK(score.alive());
  score.stopped();
  CHECK_FALSE(score.alive());
}

TEST_CASE("pull-score: noise requires more misses, quiet fewer again", "[election]") {
  PullScore score;
  const int quiet = misses_to_suspicion(score);
  for (int i = 0; i < 4; ++i) score.miss();
  for (int i = 0; i < 6; ++i) score.hit();
  const int noisy = misses_to_suspicion(score);
  CHECK(noisy > quiet);
  for (int i = 0; i < 2000; ++i) score.hit();
  CHECK(misses_to_suspicion(score) == quiet);
  // Despite the noise, a dead leader is found.
  for (int i = 0; i < 10'000; ++i) score.miss();
  for (int i = 0; i < 100; ++i) score.hit();
  CHECK(misses_to_suspicion(score) <= 2 * (kMissesBase + kNoiseMax));
}

TEST_CASE("pull-score: hysteresis, the score stays within bounds (E1, E2)", "[election]") {
  PullScore score;
  while (score.alive()) score.miss();
  CHECK(score.score() <= kScoreLow);
  score.hit();
  CHECK_FALSE(score.alive());
  while (!score.alive()) score.hit();
  CHECK(score.score() >= kScoreHigh);
  for (int i = 0; i < 100; ++i) score.hit();
  CHECK(score.score() == kScoreMax);
}

TEST_CASE("transitions: an undeclared move is not allowed", "[election]") {
  CHECK(may_follow(Role::kFollower, Role::kCandidate));
  CHECK_FALSE(may_follow(Role::kFollower, Role::kLeader));
  CHECK_FALSE(may_follow(Role::kLearner, Role::kCandidate));
  CHECK_FALSE(may_follow(Role::kRemoved, Role::kFollower));
  CHECK_FALSE(may_follow(Role::kLeader, Role::kLearner));
  CHECK_FALSE(may_follow(Role::kFailed, Role::kFollower));
  CHECK(may_follow(Phase::kAdopting, Phase::kLeading));
  CHECK_FALSE(may_follow(Phase::kFencing, Phase::kLeading));
  CHECK_FALSE(may_follow(PeerState::kIdle, PeerState::kStreaming));
}

TEST_CASE("pull-score: a late reader requires more misses, within a bound", "[election]") {
  PullScore score;
  const int quiet = misses_to_suspicion(score);
  score.reader_late(3);
  const int late = misses_to_suspicion(score);
  CHECK(late > quiet);
  score.reader_late(1'000'000);
  CHECK(score.noise() == kLatenessMax);
  CHECK(misses_to_suspicion(score) >= late);
}

TEST_CASE("pull-score: a network that was silent before may be silent twice as long",
          "[election]") {
  PullScore score;
  const int quiet = misses_to_suspicion(score);
  for (int round = 0; round < 3; ++round) {  // repaired losses: 4 periods each
    for (int i = 0; i < 4; ++i) score.unanswered();
    REQUIRE(score.alive());
    for (int i = 0; i < 10; ++i) score.hit();
  }
  CHECK(misses_to_suspicion(score) >= 8);
  // It is remembered for seconds, not for ever; and a dead leader is found all the same.
  for (int i = 0; i < 5'000; ++i) score.hit();
  CHECK(misses_to_suspicion(score) == quiet);
  for (int i = 0; i < 10'000; ++i) score.unanswered();
  CHECK_FALSE(score.alive());
  for (int i = 0; i < 100; ++i) score.hit();
  CHECK(score.silence() > kSilenceMax / 2);
  CHECK(misses_to_suspicion(score) <= 2 * (kMissesBase + 2 * kSilenceMax));
}

TEST_CASE("pull-score: heartbeats that stall do not count as the network's silence", "[election]") {
  PullScore score;
  for (int i = 0; i < 4; ++i) score.miss();
  score.hit();
  CHECK(score.silence() == 0);
  CHECK(score.noise() == 4);
}

TEST_CASE("pull-score: an answer is late after twice the usual time", "[core]") {
  PullScore score;
  constexpr std::uint64_t kMs = 1'000'000;
  CHECK_FALSE(score.is_late(kFirstAnswerNs));  // the network is unknown
  CHECK(score.is_late(kFirstAnswerNs + 1));
  score.answered(20 * kMs);
  CHECK_FALSE(score.is_late(40 * kMs));
  CHECK(score.is_late(40 * kMs + 1));
  score.answered(60 * kMs);  // the longest time counts ...
  CHECK_FALSE(score.is_late(120 * kMs));
  score.answered(20 * kMs);
  CHECK_FALSE(score.is_late(110 * kMs));
  for (int i = 0; i < 500; ++i) score.answered(20 * kMs);  // ... and fades
  CHECK(score.is_late(42 * kMs));
  score.reset();  // another leader, the same network
  CHECK_FALSE(score.is_late(40 * kMs));
}
