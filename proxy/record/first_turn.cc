// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/first_turn.h"

#include <algorithm>
#include <utility>

namespace crane::proxy {
namespace {

FirstTurn unknown(std::string why) {
  FirstTurn t;
  t.why = std::move(why);
  return t;
}

const TurnRecord* turn_of(const Evidence& e, std::uint64_t number) {
  const bool there = number >= e.first_turn && number - e.first_turn < e.turns.size();
  return there ? &e.turns[number - e.first_turn] : nullptr;
}

// Are all turns between the two points present and unchanged since they were hashed?
bool proven(const Evidence& e, const SchedulePoint& from, const SchedulePoint& to) {
  std::uint64_t hash = from.hash;
  for (std::uint64_t n = from.clock + 1; n <= to.clock; ++n) {
    const TurnRecord* t = turn_of(e, n);
    if (t == nullptr) return false;
    hash = fold_turn(hash, t->slot, t->operation, t->result);
  }
  return fold_admission(hash, to.index, to.clock) == to.hash;
}

bool same(const TurnRecord& a, const TurnRecord& b) {
  return a.slot == b.slot && a.operation == b.operation && a.result == b.result;
}

const SchedulePoint& before(const Evidence& e, std::size_t at) {
  return at == 0 ? e.base : e.points[at - 1];
}

}  // namespace

FirstTurn first_turn(const Evidence& own, const Evidence& theirs) {
  FirstTurn t;
  if (own.cut.index != 0 && own.cut == theirs.cut) {
    t.answer = FirstTurn::Answer::kNone;
    return t;
  }
  // Both replicas have the same log, so equal indexes correspond.
  const auto& points = own.points;
  std::size_t mine = points.size(), other = 0;
  for (std::size_t i = 0, j = 0; i < points.size() && mine == points.size(); ++i) {
    while (j < theirs.points.size() && theirs.points[j].index < points[i].index) ++j;
    if (j == theirs.points.size()) break;
    if (theirs.points[j].index == points[i].index && theirs.points[j] != points[i]) {
      mine = i;
      other = j;
    }
  }
  if (mine == points.size()) return unknown("too much happened since the last verified cut");
  const SchedulePoint& equal = before(own, mine);
  const SchedulePoint &here = points[mine], &there = theirs.points[other];
  if (equal != before(theirs, other)) return unknown("the last equal log index is not known");
  if (!proven(own, equal, here)) return unknown("this replica no longer remembers its turns");
  if (!proven(theirs, equal, there))
    return unknown("the other replica no longer remembers its turns");
  const std::uint64_t end = std::max(here.clock, there.clock);
  for (t.number = equal.clock + 1; t.number <= end; ++t.number) {
    const TurnRecord* a = t.number <= here.clock ? turn_of(own, t.number) : nullptr;
    const TurnRecord* b = t.number <= there.clock ? turn_of(theirs, t.number) : nullptr;
    if (a != nullptr && b != nullptr && same(*a, *b)) continue;
    t.answer = FirstTurn::Answer::kFound;
    if (a != nullptr) t.own = *a;
    if (b != nullptr) t.theirs = *b;
    return t;
  }
  return unknown("the turns are equal, but the hashes differ");
}

}  // namespace crane::proxy
