// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/schedule_record.h"

#include <bit>
#include <cstring>

#include "dmt/base/codec.h"

namespace crane::proxy {
namespace {

constexpr RecordFormat kFormat{"CRANESCH", ".schedule", kScheduleVersion, 5,
                               "not a recorded schedule"};
// The most points in one record.
constexpr std::size_t kPointsMax = 1024;

static_assert(std::endian::native == std::endian::little, "points are written as they are");

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

SchedulePoint point_at(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  SchedulePoint point;
  std::memcpy(&point, bytes.data() + offset, sizeof point);
  return point;
}

}  // namespace

Result<std::unique_ptr<ScheduleRecorder>> ScheduleRecorder::open(const std::string& dir,
                                                                 std::uint8_t replica) {
  auto file = RecordWriter::open(kFormat, dir, replica);
  if (!file.ok()) return file.error();
  return std::unique_ptr<ScheduleRecorder>(new ScheduleRecorder(std::move(file).value()));
}

void ScheduleRecorder::admitted(const SchedulePoint& point) {
  if (!recording()) return;
  points_.push_back(point);
  last_ = point.index;
  if (points_.size() >= kPointsMax) append_points();
}

void ScheduleRecorder::at_rest(const SchedulePoint& point) {
  if (point.index != last_ || last_ == 0) return;
  append_points();
  append(ScheduleKind::kAtRest, point.index, std::as_bytes(std::span(&point, 1)));
}

void ScheduleRecorder::turns(std::uint64_t first, std::span<const std::byte> records) {
  if (!records.empty()) append(ScheduleKind::kTurns, first, records);
}

void ScheduleRecorder::names(std::string_view names) {
  append(ScheduleKind::kNames, 0, std::as_bytes(std::span(names)));
}

void ScheduleRecorder::maps(std::string_view maps) {
  maps = maps.substr(0, RecordWriter::kBodyMax);
  append(ScheduleKind::kMaps, 0, std::as_bytes(std::span(maps)));
}

void ScheduleRecorder::append(ScheduleKind kind, std::uint64_t number,
                              std::span<const std::byte> body) {
  file_->append(static_cast<std::uint8_t>(kind), number, body, {});
}

void ScheduleRecorder::append_points() {
  if (points_.empty()) return;
  append(ScheduleKind::kPoints, points_.front().index, std::as_bytes(std::span(points_)));
  points_.clear();
}

void ScheduleRecorder::flush() {
  append_points();
  file_->flush();
}

void ScheduleRecorder::finish() {
  append_points();
  file_->finish();
}

Result<RecordedSchedule> RecordedSchedule::open(const std::string& path) {
  auto file = RecordFile::open(kFormat, path);
  if (!file.ok()) return file.error();
  RecordedSchedule schedule;
  schedule.file_ = std::move(file).value();
  const Outcome read = schedule.file_.for_each(
      [&](std::uint8_t kind, std::uint64_t number, std::span<const std::byte> body) {
        return schedule.take(static_cast<ScheduleKind>(kind), number, body);
      });
  if (!read.ok()) return read.error();
  return schedule;
}

bool RecordedSchedule::take(ScheduleKind kind, std::uint64_t number,
                            std::span<const std::byte> body) {
  switch (kind) {
    case ScheduleKind::kPoints:
      return take_points(body);
    case ScheduleKind::kAtRest:
      if (body.size() != sizeof(SchedulePoint) || at_rest_) return false;
      at_rest_ = point_at(body, 0);
      return at_rest_->index == last_;
    case ScheduleKind::kTurns:
      if (body.empty() || body.size() % sizeof(TurnRecord) != 0) return false;
      turns_[number] = body;
      return true;
    case ScheduleKind::kNames:
      names_.set_operations(text_of(body));
      return true;
    case ScheduleKind::kMaps:
      names_.set_maps(text_of(body));
      return true;
  }
  return false;
}

bool RecordedSchedule::take_points(std::span<const std::byte> body) {
  if (body.empty() || body.size() % sizeof(SchedulePoint) != 0 || at_rest_) return false;
  for (std::size_t at = 0; at < body.size(); at += sizeof(SchedulePoint)) {
    const SchedulePoint point = point_at(body, at);
    if (point.index <= last_) return false;
    last_ = point.index;
  }
  pieces_.push_back(body);
  size_ += body.size() / sizeof(SchedulePoint);
  return true;
}

std::optional<TurnRecord> RecordedSchedule::turn(std::uint64_t number) const {
  auto piece = turns_.upper_bound(number);
  if (piece == turns_.begin()) return std::nullopt;
  --piece;
  const std::uint64_t at = number - piece->first;
  if (at >= piece->second.size() / sizeof(TurnRecord)) return std::nullopt;
  TurnRecord record;
  std::memcpy(&record, piece->second.data() + at * sizeof record, sizeof record);
  return record;
}

bool RecordedSchedule::Cursor::peek(SchedulePoint& point) const noexcept {
  if (piece_ >= schedule_->pieces_.size()) return false;
  point = point_at(schedule_->pieces_[piece_], offset_);
  return true;
}

void RecordedSchedule::Cursor::advance() noexcept {
  offset_ += sizeof(SchedulePoint);
  if (offset_ < schedule_->pieces_[piece_].size()) return;
  offset_ = 0;
  ++piece_;
}

}  // namespace crane::proxy
