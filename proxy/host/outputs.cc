// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/outputs.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "proxy/clients/encode.h"
#include "proxy/clients/outbound.h"

namespace crane::node {
namespace {
constexpr std::int64_t kFlushPeriodNs = 200'000'000;
// The number of log indexes remembered since the last verified cut.
constexpr std::size_t kPointsMax = 16384;
}  // namespace

Result<std::unique_ptr<Outputs>> Outputs::open(const std::string& record, std::uint8_t replica,
                                               const std::string& about) {
  auto outputs = std::make_unique<Outputs>();
  if (record.empty()) return outputs;
  auto recorder = proxy::OutputRecorder::open(record, replica);
  if (!recorder.ok()) return recorder.error();
  outputs->recorder_ = std::move(recorder).value();
  auto schedule = proxy::ScheduleRecorder::open(record, replica);
  if (!schedule.ok()) return schedule.error();
  outputs->schedule_ = std::move(schedule).value();
  auto history = proxy::HistoryRecorder::open(record, replica);
  if (!history.ok()) return history.error();
  outputs->history_ = std::move(history).value();
  outputs->history_->about(about);
  return outputs;
}

void Outputs::committed(const consensus::EntryView& entry) {
  if (history_ != nullptr) history_->committed(entry);
}

void Outputs::connected(ConnId conn, const ConnectBody& body) {
  if (recorder_ != nullptr) recorder_->connected(conn, body.port, proxy::text(body.peer));
}

// The destination is compared as the first bytes that the server writes to the connection.
void Outputs::asked(ConnId conn, std::span<const std::byte> bytes) {
  hash_.bytes(conn, bytes);
  proxy::Destination to;
  if (recorder_ == nullptr || !proxy::read_destination(bytes, to)) return;
  recorder_->connected(conn, to.request.peer.port, proxy::name_of(to));
  recorder_->bytes(conn, bytes);
}

// A requested name is compared as a whole connection.
void Outputs::asked_name(ConnId number, std::span<const std::byte> bytes) {
  hash_.bytes(number, bytes);
  hash_.closed(number);
  if (recorder_ == nullptr) return;
  recorder_->connected(number, 0, proxy::kResolverPeer);
  recorder_->bytes(number, bytes);
  recorder_->closed(number, "closed");
}

void Outputs::output(const OutputHeader& header, std::span<const std::byte> bytes) {
  const ConnId conn{header.conn};
  switch (header.type) {
    case OutputType::kBytes:
      bytes_ += bytes.size();
      ++writes_;
      hash_.bytes(conn, bytes);
      if (recorder_ != nullptr) recorder_->bytes(conn, bytes);
      break;
    case OutputType::kConnect:
      asked(conn, bytes);
      break;
    case OutputType::kResolve:
      asked_name(conn, bytes);
      break;
    case OutputType::kClose:
    case OutputType::kRefused:
      hash_.closed(conn);
      if (recorder_ != nullptr) {
        recorder_->closed(conn, header.type == OutputType::kRefused ? "refused"
                                : header.argument != 0              ? "reset"
                                                                    : "closed");
      }
      break;
    case OutputType::kAdmitted:
      if (points_.size() < kPointsMax) {
        points_.push_back({header.conn, header.clock, header.argument});
      } else {
        points_whole_ = false;
      }
      if (schedule_ != nullptr) schedule_->admitted({header.conn, header.clock, header.argument});
      break;
    case OutputType::kTurns:
      turns(header.conn, bytes);
      break;
    default:
      break;
  }
}

void Outputs::at_rest(const proxy::SchedulePoint& point) {
  if (schedule_ != nullptr) schedule_->at_rest(point);
}

void Outputs::turns(std::uint64_t first, std::span<const std::byte> records) {
  if (schedule_ != nullptr) schedule_->turns(first, records);
}

void Outputs::names(std::string_view names, std::string_view maps) {
  if (schedule_ == nullptr) return;
  schedule_->names(names);
  schedule_->maps(maps);
}

void Outputs::flush() {
  const auto flush = [](auto& recorder) {
    if (recorder == nullptr) return;
    recorder->flush();
    if (const std::string message = recorder->take_message(); !message.empty()) {
      spdlog::error("{}", message);
    }
  };
  flush(recorder_);
  flush(schedule_);
  flush(history_);
}

void Outputs::finish() {
  flush();
  if (recorder_ != nullptr) recorder_->finish();
  if (schedule_ != nullptr) schedule_->finish();
  if (history_ != nullptr) history_->finish();
}

void Outputs::tick(std::int64_t now_ns) {
  if (now_ns - flushed_ns_ < kFlushPeriodNs) return;
  flushed_ns_ = now_ns;
  flush();
}

void Outputs::restore(const State& state, const proxy::SchedulePoint& point) {
  hash_.restore(state.hash);
  bytes_ = state.bytes;
  points_.clear();
  points_whole_ = false;
  base_ = point;
}

void Outputs::restart_from(const proxy::SchedulePoint& point) {
  hash_ = {};
  points_.clear();
  points_whole_ = true;
  base_ = point;
}

std::uint64_t Outputs::digest() const noexcept { return hash_.digest(); }

proxy::Evidence Outputs::evidence(const proxy::SchedulePoint& cut) const {
  proxy::Evidence e{hash_.marks(), points_, hash_.marks_whole() && points_whole_,
                    hash_.marks_done()};
  e.base = base_;
  e.cut = cut;
  return e;
}

void Outputs::verified(const proxy::Evidence& evidence) {
  hash_.forget(evidence.marks_done);
  const auto count = static_cast<std::ptrdiff_t>(std::min(evidence.points.size(), points_.size()));
  points_.erase(points_.begin(), points_.begin() + count);
  points_whole_ = true;
  base_ = evidence.cut;
}

}  // namespace crane::node
