// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/schedule_compare.h"

#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"

namespace crane::proxy {
namespace {

using Cursor = RecordedSchedule::Cursor;
using Points = std::vector<SchedulePoint>;

bool all_peek(const std::vector<Cursor>& cursors, Points& points) {
  for (std::size_t i = 0; i < cursors.size(); ++i) {
    if (!cursors[i].peek(points[i])) return false;
  }
  return true;
}

// A replica that recovered from a checkpoint begins later than the others.
void skip_to_common_start(std::vector<Cursor>& cursors) {
  std::uint64_t first = 0;
  SchedulePoint point;
  for (const Cursor& c : cursors) {
    if (c.peek(point)) first = std::max(first, point.index);
  }
  for (Cursor& c : cursors) {
    while (c.peek(point) && point.index < first) c.advance();
  }
}

ScheduleDifference difference_at(const Points& points) {
  ScheduleDifference d;
  d.index = std::min_element(points.begin(), points.end(), [](const auto& a, const auto& b) {
              return a.index < b.index;
            })->index;
  for (const SchedulePoint& p : points) {
    d.sides.push_back(p.index == d.index ? std::optional(p) : std::nullopt);
  }
  return d;
}

void note_tails(const std::vector<RecordedSchedule>& recordings, ScheduleComparison& result) {
  for (const RecordedSchedule& r : recordings) {
    const RecordFile& f = r.file();
    if (f.ends_early()) {
      result.unknown.push_back(
          f.path() + (f.end() == RecordingEnd::kStopped
                          ? std::string(": recording stopped: ") + std::strerror(f.stop_error())
                          : ": ends early (its replica was killed, or still runs)"));
    } else if (r.last() > result.last) {
      result.unknown.push_back(f.path() + ": continues to log index " + std::to_string(r.last()) +
                               ", but not all others do");
    }
  }
}

// Compares what ran between the last admission and the end, if all recordings contain it.
void compare_rest(const std::vector<RecordedSchedule>& recordings, ScheduleComparison& result) {
  ScheduleDifference d;
  d.index = result.last;
  d.at_rest = true;
  bool equal = true;
  for (const RecordedSchedule& r : recordings) {
    if (!r.at_rest() || r.at_rest()->index != result.last) return;
    d.sides.push_back(r.at_rest());
    equal = equal && *r.at_rest() == *recordings[0].at_rest();
  }
  result.rest_compared = true;
  if (!equal) result.difference = std::move(d);
}

bool same(const std::optional<TurnRecord>& a, const std::optional<TurnRecord>& b) {
  if (!a || !b) return !a && !b;
  return a->slot == b->slot && a->operation == b->operation && a->result == b->result;
}

// Searches between the last equal point and the first different one.  A replica that did not admit
// the entry may have taken any number of turns.
std::optional<TurnDifference> first_turn(const std::vector<RecordedSchedule>& recordings,
                                         const ScheduleDifference& d) {
  const std::uint64_t after = d.equal_before ? d.equal_before->clock : 0;
  std::uint64_t end = 0;
  for (const auto& side : d.sides) end = std::max(end, side ? side->clock : 0);
  TurnDifference found;
  for (found.number = after + 1; found.number <= end; ++found.number) {
    found.sides.clear();
    bool equal = true;
    for (std::size_t i = 0; i < recordings.size(); ++i) {
      const bool taken = !d.sides[i] || found.number <= d.sides[i]->clock;
      const auto turn = recordings[i].turn(found.number);
      if (taken && d.sides[i] && !turn) return std::nullopt;  // not recorded
      found.sides.push_back(taken ? turn : std::nullopt);
      equal = equal && same(found.sides[i], found.sides[0]);
    }
    if (!equal) return found;
  }
  return std::nullopt;
}

}  // namespace

const char* name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

ScheduleComparison compare_schedules(const std::vector<RecordedSchedule>& recordings, bool prefix) {
  CRANE_ASSERT(recordings.size() >= 2);
  ScheduleComparison result;
  std::vector<Cursor> cursors(recordings.begin(), recordings.end());
  skip_to_common_start(cursors);
  Points points(cursors.size());
  std::optional<SchedulePoint> equal_before;
  while (!result.difference && all_peek(cursors, points)) {
    const bool equal = std::all_of(points.begin(), points.end(),
                                   [&](const SchedulePoint& p) { return p == points[0]; });
    if (!equal) {
      result.difference = difference_at(points);
      break;
    }
    if (result.common++ == 0) result.first = points[0].index;
    result.last = points[0].index;
    equal_before = points[0];
    for (Cursor& c : cursors) c.advance();
  }
  if (!result.difference && result.common > 0) compare_rest(recordings, result);
  if (result.difference) {
    result.difference->equal_before = equal_before;
    result.turn = first_turn(recordings, *result.difference);
    result.verdict = Verdict::kDifferent;
    return result;
  }
  if (result.common == 0) result.unknown.push_back("no log index is in all of them");
  if (!prefix) note_tails(recordings, result);  // LIVE-V1
  result.verdict = result.unknown.empty() ? Verdict::kEqual : Verdict::kUnknown;
  return result;
}

}  // namespace crane::proxy
