// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/history_record.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "dmt/base/assert.h"
#include "dmt/base/codec.h"

namespace crane::proxy {
namespace {

constexpr std::size_t kHeadBytes = 32;

}  // namespace

Result<std::unique_ptr<HistoryRecorder>> HistoryRecorder::open(const std::string& dir,
                                                               std::uint8_t replica) {
  auto file = RecordWriter::open(kHistoryFormat, dir, replica);
  if (!file.ok()) return file.error();
  return std::unique_ptr<HistoryRecorder>(new HistoryRecorder(std::move(file).value()));
}

void HistoryRecorder::about(std::string_view json) {
  for (std::uint64_t piece = 0; !json.empty(); ++piece) {
    const auto part = json.substr(0, RecordWriter::kBodyMax);
    file_->append(static_cast<std::uint8_t>(HistoryKind::kAbout), piece,
                  std::as_bytes(std::span(part)), {});
    json.remove_prefix(part.size());
  }
}

void HistoryRecorder::committed(const consensus::EntryView& entry) {
  std::array<std::byte, kHeadBytes> head{};
  CRANE_ASSERT(entry.payload.size() <= RecordWriter::kBodyMax - head.size());
  Writer writer(head);
  writer.put(value(entry.at.view));
  writer.put(entry.stamp_ns);
  writer.put(entry.end_pos);
  writer.put(entry.grant);
  writer.put(std::uint32_t{entry.type});
  CRANE_ASSERT(writer.ok() && writer.used() == kHeadBytes);
  file_->append(static_cast<std::uint8_t>(HistoryKind::kEntry), value(entry.at.index), head,
                entry.payload);
}

Result<History> History::open(const std::string& path, std::string& why) {
  auto file = RecordFile::open(kHistoryFormat, path);
  if (!file.ok()) {
    why = why_no_history(file.error());
    return file.error();
  }
  History history;
  history.file_ = std::move(file).value();
  const Outcome read = history.file_.for_each(
      [&](std::uint8_t kind, std::uint64_t number, std::span<const std::byte> body) {
        return history.take(static_cast<HistoryKind>(kind), number, body, why);
      });
  if (read.ok()) return history;
  if (why.empty()) {
    const std::uint64_t last = history.last();
    why = read.error().what + (last == 0 ? std::string(" before the first entry")
                                         : " after entry " + std::to_string(last));
  }
  return read.error();
}

std::uint64_t history_entry_bytes(const consensus::EntryView& entry) noexcept {
  return kRecordHeadBytes + kHeadBytes + entry.payload.size();
}

std::string why_no_history(const Error& e) {
  if (e.code == Code::kSystem) return std::generic_category().message(e.detail);
  if (e.code != Code::kWrongVersion) return e.what;
  return "recorded by another version of Crane (format " + std::to_string(e.detail) +
         ", this one reads " + std::to_string(kHistoryVersion) + ")";
}

bool History::take(HistoryKind kind, std::uint64_t number, std::span<const std::byte> body,
                   std::string& why) {
  if (kind == HistoryKind::kAbout) {
    if (number != about_pieces_++ || !entries_.empty()) {
      why = "its description of the server is not in one piece";
      return false;
    }
    about_.append(reinterpret_cast<const char*>(body.data()), body.size());
    return true;
  }
  if (body.size() < kHeadBytes) {
    why = "entry " + std::to_string(number) + " is too short";
    return false;
  }
  if (entries_.empty()) {
    first_ = number;
  } else if (number != last() + 1) {
    why = "entry " + std::to_string(last()) + " is followed by entry " + std::to_string(number);
    return false;
  }
  entries_.push_back(body);
  return number != 0;
}

consensus::EntryView History::entry(std::uint64_t index) const {
  CRANE_ASSERT(index >= first_ && index <= last());
  return *history_entry(static_cast<std::uint8_t>(HistoryKind::kEntry), index,
                        entries_[index - first_]);
}

std::optional<consensus::EntryView> history_entry(std::uint8_t kind, std::uint64_t number,
                                                  std::span<const std::byte> body) {
  const bool is_entry = kind == static_cast<std::uint8_t>(HistoryKind::kEntry);
  if (!is_entry || body.size() < kHeadBytes || number == 0) return std::nullopt;
  Reader reader(body);
  consensus::EntryView entry;
  entry.at = {View{reader.get<std::uint64_t>()}, Index{number}};
  entry.stamp_ns = reader.get<std::uint64_t>();
  entry.end_pos = reader.get<std::uint64_t>();
  entry.grant = reader.get<std::uint32_t>();
  entry.type = static_cast<std::uint8_t>(reader.get<std::uint32_t>());
  entry.payload = reader.get_bytes(reader.left());
  return entry;
}

}  // namespace crane::proxy
