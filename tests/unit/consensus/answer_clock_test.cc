// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/answer_clock.h"

#include <catch2/catch.hpp>

using crane::consensus::AnswerClock;

namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Simulates consecutive answers that take `took_ns` each; returns the time at the end.
std::uint64_t usual(AnswerClock& clock, std::uint64_t& sequence, std::uint64_t took_ns, int n) {
  std::uint64_t now = kMs;
  for (int i = 0; i < n; ++i) {
    clock.sent(++sequence);
    clock.look_at(now);
    now += took_ns;
    clock.answered(sequence, now);
  }
  return now;
}

}  // namespace

TEST_CASE("answer clock: an answered request needs no probe", "[fabric]") {
  AnswerClock clock;
  CHECK(clock.due_ns() == AnswerClock::kNever);
  clock.sent(1);
  CHECK(clock.due_ns() == AnswerClock::kNever);  // not looked at: the request is not sent yet
  clock.look_at(5 * kMs);
  CHECK(clock.due_ns() == 5 * kMs + AnswerClock::kPauseMinNs);
  clock.answered(1, 6 * kMs);
  CHECK(clock.due_ns() == AnswerClock::kNever);
  clock.look_at(50 * kMs);
  CHECK(clock.due_ns() == AnswerClock::kNever);
}

TEST_CASE("answer clock: after some of the answers it waits for the rest", "[fabric]") {
  AnswerClock clock;
  clock.sent(1);
  clock.sent(2);
  clock.look_at(5 * kMs);
  clock.answered(1, 6 * kMs);
  CHECK(clock.due_ns() == 6 * kMs + clock.pause_ns());
  clock.answered(2, 7 * kMs);
  CHECK(clock.due_ns() == AnswerClock::kNever);
}

TEST_CASE("answer clock: probes back off until any answer comes", "[fabric]") {
  AnswerClock clock;
  clock.sent(1);
  clock.look_at(0);
  std::uint64_t last = 0;
  std::uint64_t sequence = 1;
  int probes = 0;
  while (clock.due_ns() < 1000 * kMs) {
    const std::uint64_t due = clock.due_ns();
    CHECK(due >= last + AnswerClock::kPauseMinNs);
    clock.probed(++sequence, due);
    CHECK(clock.due_ns() - due <= AnswerClock::kPauseMaxNs);
    last = due;
    ++probes;
  }
  CHECK(probes >= 8);
  CHECK(probes <= 40);
  clock.answered(sequence, last + kMs);
  CHECK(clock.due_ns() == AnswerClock::kNever);
}

TEST_CASE("answer clock: over a long distance it waits for the usual time, not for the worst",
          "[fabric]") {
  AnswerClock clock;
  std::uint64_t sequence = 0;
  usual(clock, sequence, 40 * kMs, 200);
  CHECK(clock.pause_ns() > 40 * kMs);
  CHECK(clock.pause_ns() <= AnswerClock::kPauseMaxNs);
  // Close again, with an occasional repaired loss.
  for (int i = 0; i < 50; ++i) {
    usual(clock, sequence, kMs / 10, 19);
    usual(clock, sequence, 200 * kMs, 1);
  }
  CHECK(clock.pause_ns() < 30 * kMs);
}
