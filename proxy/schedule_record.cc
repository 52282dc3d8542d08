// SPDX-License-Identifier: Apache-2.0
#include "proxy/schedule_record.h"

#include <bit>
#include <cstring>

#include "dmt/base/codec.h"

namespace crane::proxy {
namespace {

constexpr RecordFormat kFormat{"CRANESCH", ".schedule", kScheduleVersion, 2,
                               "not a recorded schedule"};
// Points of one record.
constexpr std::size_t kPointsMax = 1024;

static_assert(std::endian::native == std::endian::little, "points are written as they are");

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
  file_->append(static_cast<std::uint8_t>(ScheduleKind::kAtRest), point.index,
                std::as_bytes(std::span(&point, 1)), {});
}

void ScheduleRecorder::append_points() {
  if (points_.empty()) return;
  file_->append(static_cast<std::uint8_t>(ScheduleKind::kPoints), points_.front().index,
                std::as_bytes(std::span(points_)), {});
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
      [&](std::uint8_t kind, std::uint64_t, std::span<const std::byte> body) {
        return schedule.take(static_cast<ScheduleKind>(kind), body);
      });
  if (!read.ok()) return read.error();
  return schedule;
}

bool RecordedSchedule::take(ScheduleKind kind, std::span<const std::byte> body) {
  if (body.empty() || body.size() % sizeof(SchedulePoint) != 0 || at_rest_) return false;
  if (kind == ScheduleKind::kAtRest) {
    at_rest_ = point_at(body, 0);
    return body.size() == sizeof(SchedulePoint) && at_rest_->index == last_;
  }
  for (std::size_t at = 0; at < body.size(); at += sizeof(SchedulePoint)) {
    const SchedulePoint point = point_at(body, at);
    if (point.index <= last_) return false;
    last_ = point.index;
  }
  pieces_.push_back(body);
  size_ += body.size() / sizeof(SchedulePoint);
  return true;
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
