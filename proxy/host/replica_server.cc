// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/replica_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <utility>

#include "proxy/host/consensus_options.h"
#include "proxy/host/history_about.h"
#include "proxy/host/server_maps.h"

namespace crane::node {
namespace {

// Config::test_only_flip changes a bit after this many bytes.
constexpr std::uint64_t kFlipAfterBytes = 20'000;

}  // namespace

ReplicaServer::ReplicaServer(const Config& config, NodeMode& mode, Owner& owner)
    : config_(config),
      mode_(mode),
      owner_(owner),
      files_(config, config.keeps_files && mode.member()),
      trials_(config) {}

std::optional<ExitStatus> ReplicaServer::open(const StartingPoint& start, std::string& why) {
  auto segment = start.restores_processes() ? Segment::adopt(config_, start.directory())
                                            : Segment::create(config_);
  if (!segment.ok()) {
    why = fmt::format("{}: {}", config_.replica_shm_dir(), segment.error().message());
    return segment.error().code == Code::kFull ? ExitStatus::kNoRoom : ExitStatus::kNoSegment;
  }
  segment_ = std::move(segment).value();
  scheduler_link_ = std::make_unique<SchedulerLink>(layout(), *segment_);
  // A recording from before the checkpoint could not be distinguished from what follows it.
  const std::string record = start.at_checkpoint() ? "" : config_.record;
  auto outputs = Outputs::open(record, config_.replica, history_about(config_));
  if (!outputs.ok()) {
    why = fmt::format("record {}: {}", config_.record, outputs.error().message());
    return ExitStatus::kBadConfiguration;
  }
  outputs_ = std::move(outputs).value();
  return std::nullopt;
}

void ReplicaServer::open_monitor(event_base* base) {
  monitor_ = std::make_unique<ServerMonitor>(base, config_, *segment_, owner_);
  if (const std::string kept = files_.begin(); !kept.empty()) monitor_->keep_files(kept);
}

Index ReplicaServer::applied() const noexcept {
  return Index{layout().scheduler.applied_index.load(std::memory_order_acquire)};
}

// --- output of the server
// ---------------------------------------------------------------------------

std::size_t ReplicaServer::drain() {
  return scheduler_link_->drain(
      [this](const OutputHeader& header, std::span<const std::byte> bytes) {
        return take(header, bytes);
      },
      [this] { hand_on(); });
}

void ReplicaServer::handle_output(const OutputHeader& header, std::span<const std::byte> bytes) {
  take(header, bytes);
  hand_on();
}

bool ReplicaServer::take(const OutputHeader& header, std::span<const std::byte> bytes) {
  const std::span<const std::byte> written = flip(header, bytes);
  files_.move(applied(), header.clock);  // before a client gets it (LAST-3)
  outputs_->output(header, written);
  mode_.output(layout(), header, written);
  const bool of_client = header.type != OutputType::kAdmitted && header.type != OutputType::kTurns;
  if (of_client && !gathered_.takes(header)) hand_on(gathered_.ends_by(header));
  if (header.type == OutputType::kBytes) {
    gathered_.add(header, written);
    if (gathered_.is_full()) hand_on();
  } else {
    owner_.handle_server_output(header, {&written, 1}, false);  // SERVER-1
  }
  return gathered_.empty();
}

void ReplicaServer::hand_on(bool last) {
  if (gathered_.empty()) return;
  const GatheredOutput gathered = std::exchange(gathered_, {});
  owner_.handle_server_output(gathered.header(), gathered.pieces(), last);  // SERVER-1
}

std::span<const std::byte> ReplicaServer::flip(const OutputHeader& header,
                                               std::span<const std::byte> bytes) {
  const bool here = config_.test_only_flip && flipped_.empty() &&
                    header.type == OutputType::kBytes && outputs_->bytes() > kFlipAfterBytes;
  if (!here) return bytes;
  spdlog::warn("test only: a bit of the output after entry {} is wrong", value(applied()));
  flipped_.assign(bytes.begin(), bytes.end());
  flipped_.back() ^= std::byte{1};
  return flipped_;
}

std::optional<proxy::SchedulePoint> ReplicaServer::rest_point() {
  drain();
  if (scheduler_link_->held()) return std::nullopt;
  const dmt::SchedulerState& s = layout().scheduler;
  if (s.holder.load(std::memory_order_acquire) != dmt::kHolderIdle) return std::nullopt;
  const proxy::SchedulePoint rest{value(applied()), s.clock, s.hash};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (s.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle) return std::nullopt;
  return rest;
}

// --- the end ------------------------------------------------------------------------------------

void ReplicaServer::note_rest(bool whole) {
  if (!whole) return;
  const auto rest = rest_point();
  if (!rest) return;
  outputs_->at_rest(*rest);
  const dmt::Layout& w = layout();
  if (w.header.configuration.trace == 0) return;
  const std::uint64_t clock = w.scheduler.clock;
  const std::uint64_t first = (clock + 1) / dmt::kTurnsPerRecord * dmt::kTurnsPerRecord;
  const std::span turns(&w.turns[first % dmt::kTurnHistory], clock + 1 - first);
  outputs_->turns(first, std::as_bytes(turns));
  outputs_->names({w.operation_names, sizeof w.operation_names}, maps_of(pid()));
}

void ReplicaServer::stop(bool in_order, bool whole) {
  if (monitor_ != nullptr) monitor_->stop();
  if (segment_ != nullptr && in_order) {
    files_.end(applied(), layout().scheduler.clock, exit_.reported());
  }
  if (outputs_ == nullptr) return;
  outputs_->flush();
  if (whole) outputs_->finish();
}

}  // namespace crane::node
