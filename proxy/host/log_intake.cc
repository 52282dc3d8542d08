// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/log_intake.h"

#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {

void LogIntake::begin_behind(Index at, Index first_start, const EntryCounts& counts) {
  committed_ = at;
  first_start_ = first_start;
  counts_ = counts;
}

void LogIntake::committed(const consensus::EntryView& entry) {
  CRANE_ASSERT(is_next(entry.at.index));  // INTAKE-1
  committed_ = entry.at.index;
  end_ = entry.end_pos;
  if (is_of_consensus(entry)) return;
  if (!owner_.holds_log()) return deliver(entry, false);
  owner_.entry_held(entry);
  held_.push_back({entry, {entry.payload.begin(), entry.payload.end()}});
}

void LogIntake::pass_over(const consensus::EntryView& entry) noexcept {
  committed_ = entry.at.index;
  end_ = entry.end_pos;
}

void LogIntake::deliver(const consensus::EntryView& entry, bool was_held) {
  ++counts_[entry.type % counts_.size()];
  if (static_cast<EntryType>(entry.type) == EntryType::kStart && value(first_start_) == 0) {
    first_start_ = entry.at.index;
  }
  delivered_ = {entry.at, entry.end_pos, entry.stamp_ns};
  owner_.deliver(entry, was_held);
}

LogIntake::Held LogIntake::take_first() {
  Held first = std::move(held_.front());
  held_.pop_front();
  first.entry.payload = first.payload;
  return first;
}

// One of the delivered entries may hold the log again.
void LogIntake::release() {
  while (!held_.empty() && !owner_.holds_log()) {  // INTAKE-2
    const Held first = take_first();
    deliver(first.entry, true);
  }
}

std::uint64_t LogIntake::inputs_of_clients() const noexcept {
  std::uint64_t all = 0;
  for (std::size_t type = 1; type < counts_.size(); ++type) {
    const bool client = origin_of(static_cast<EntryType>(type)) == EntryOrigin::kClient;
    if (client) all += counts_[type];
  }
  return all;
}

}  // namespace crane::node
