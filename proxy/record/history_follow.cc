// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/history_follow.h"

#include "proxy/record/history_record.h"

namespace crane::proxy {

Result<HistoryFollower> HistoryFollower::open(const std::string& path, std::string& why) {
  auto file = RecordTail::open(kHistoryFormat, path);
  if (!file.ok()) {
    why = why_no_history(file.error());
    return file.error();
  }
  HistoryFollower follower(std::move(file).value(), path);
  std::uint64_t pieces = 0;
  while (auto record = follower.next_record()) {
    if (record->kind != static_cast<std::uint8_t>(HistoryKind::kAbout)) {
      follower.first_ = record;
      break;
    }
    if (record->number != pieces++)
      follower.damage_ = "its description of the server is not in one piece";
    follower.about_.append(reinterpret_cast<const char*>(record->body.data()), record->body.size());
  }
  if (follower.damage_.empty()) return follower;
  why = follower.damage_;
  return Error{Code::kDamaged, 0, "not a recorded history"};
}

std::optional<RecordTail::Record> HistoryFollower::next_record() {
  if (!damage_.empty()) return std::nullopt;
  auto record = file_.next();
  if (record.ok()) return record.value();
  damage_ = std::string(record.error().what) + " after entry " + std::to_string(last_);
  return std::nullopt;
}

std::optional<consensus::EntryView> HistoryFollower::next() {
  const auto record = first_ ? std::exchange(first_, std::nullopt) : next_record();
  if (!record) return std::nullopt;
  const bool follows = last_ == 0 || record->number == last_ + 1;
  const auto entry = history_entry(record->kind, record->number, record->body);
  if (!entry || !follows) {
    damage_ = "entry " + std::to_string(last_) + " is followed by " +
              (entry ? "entry " + std::to_string(record->number) : std::string("none"));
    return std::nullopt;
  }
  last_ = record->number;
  if (entry->type < kConsensusTypes) {
    newest_ = entry->stamp_ns;
    if (began_ == 0) began_ = newest_;
  }
  return entry;
}

}  // namespace crane::proxy
