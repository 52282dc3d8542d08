// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares the recorded schedules of two or more replicas at their common log indexes (DESIGN D14,
// section 8).  Only there clock and hash must be equal.
//
// Threads: pure functions.
//
// INVARIANT LIVE-V1  The verdict is kEqual only for recordings that were compared from the first to
//                    the last point of each; anything that could not be compared makes it kUnknown.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proxy/record/schedule_record.h"

namespace crane::proxy {

enum class Verdict : std::uint8_t { kEqual, kDifferent, kUnknown };
const char* name(Verdict verdict) noexcept;

struct ScheduleDifference {
  std::uint64_t index = 0;  // the first log index at which they differ
  bool at_rest = false;     // equal at the index, but not at rest after it
  // By recording; nullopt: it did not admit that entry, although it admitted later ones.
  std::vector<std::optional<SchedulePoint>> sides;
  std::optional<SchedulePoint> equal_before;  // the last point at which all were equal
};

// The first different turn, if the recordings contain turns.
struct TurnDifference {
  std::uint64_t number = 0;
  // By recording; nullopt: that replica admitted the entry before it took this turn.
  std::vector<std::optional<TurnRecord>> sides;
};

struct ScheduleComparison {
  Verdict verdict = Verdict::kUnknown;
  std::uint64_t common = 0;           // log indexes compared
  std::uint64_t first = 0, last = 0;  // the first and the last of them
  bool rest_compared = false;         // what ran after the last one was compared, too
  std::optional<ScheduleDifference> difference;
  std::optional<TurnDifference> turn;
  std::vector<std::string> unknown;  // what could not be compared, and why
};

// `prefix`: a recording may end before the others; comparing what it contains is enough.
// REQUIRES: at least two recordings.
ScheduleComparison compare_schedules(const std::vector<RecordedSchedule>& recordings, bool prefix);

}  // namespace crane::proxy
