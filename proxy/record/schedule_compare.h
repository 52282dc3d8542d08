// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares the recorded schedules of two or more replicas at their common log indexes (DESIGN D14,
// section 8): there, and only there, clock and hash must be equal.
//
// Threads: pure functions.
//
// INVARIANT LIVE-V1  kEqual is said only of recordings that were compared from the first to the
//               last point of each; whatever could not be compared makes it kUnknown.

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
  bool at_rest = false;     // equal there, but not when they came to rest after it
  // By recording; nullopt: it did not admit that entry, though it admitted later ones.
  std::vector<std::optional<SchedulePoint>> sides;
  std::optional<SchedulePoint> equal_before;  // the last point at which all were equal
};

// The first turn that differs, when the recordings hold turns.
struct TurnDifference {
  std::uint64_t number = 0;
  // By recording; nullopt: that replica admitted the entry before it took this turn.
  std::vector<std::optional<TurnRecord>> sides;
};

struct ScheduleComparison {
  Verdict verdict = Verdict::kUnknown;
  std::uint64_t common = 0;           // log indexes compared
  std::uint64_t first = 0, last = 0;  // of them
  bool rest_compared = false;         // also what ran after the last one
  std::optional<ScheduleDifference> difference;
  std::optional<TurnDifference> turn;
  std::vector<std::string> unknown;  // what could not be compared, and why
};

// `prefix`: a recording may end before the others: what it holds is compared, and that is enough.
// REQUIRES: at least two recordings.
ScheduleComparison compare_schedules(const std::vector<RecordedSchedule>& recordings, bool prefix);

}  // namespace crane::proxy
