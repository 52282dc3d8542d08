// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "dmt/sequence/entry.h"
#include "dmt/stall.h"
#include "proxy/clients/encode.h"
#include "proxy/host/replica_server.h"
#include "proxy/host/turns.h"

namespace crane::node {
namespace {
constexpr std::int64_t kProgressNs = 300'000'000;
}  // namespace

Result<std::unique_ptr<consensus::Consensus>> Replay::open_log(consensus::Options options,
                                                               Index behind,
                                                               const LogReader& reader) {
  last_for_server_ = behind;
  for (std::uint64_t i = value(to_);
       !follows() && i > value(behind) && i >= recorded_.history->first(); --i) {
    if (recorded_.history->entry(i).type >= proxy::kConsensusTypes) continue;
    last_for_server_ = Index{i};
    break;
  }
  ReplayLog::Options log;
  log.history = recorded_.history;
  log.follower = recorded_.follower;
  log.behind = behind;
  log.to = to_;
  log.replicas = options.replicas;
  log.gate = this;
  reader_ = &reader;
  log.callbacks = std::move(options.callbacks);
  auto opened = std::make_unique<ReplayLog>(std::move(log));
  log_ = opened.get();
  return std::unique_ptr<consensus::Consensus>(std::move(opened));
}

// The server needs the first START to begin; later entries wait for the tool.
bool Replay::opens() const {
  return reader_->server_has_room() && !(reader_->group_began() && holds());
}

bool Replay::knows_all_stalls(StallWatch& stalls, unsigned replicas) {
  if (replicas != 1) return false;
  const proxy::History& h = *recorded_.history;
  for (std::uint64_t i = h.first(); i <= h.last() && i != 0; ++i) {
    const consensus::EntryView entry = h.entry(i);
    const auto type = static_cast<EntryType>(entry.type);
    if (type == EntryType::kPreempt) stalls.committed(type, entry.payload);
  }
  stalls.committed(EntryType::kPassed, proxy::bytes_of(PassedBody{dmt::kNoClock}));
  return true;
}

void Replay::begin_behind(Index at, const std::vector<proxy::OutputStream>& open) {
  check_.begin_behind(value(at), open);
}

std::vector<EarlyPoint> Replay::early_points(const Config& config) const {
  if (follows()) return NodeMode::early_points(config);
  std::vector<EarlyPoint> points;
  const proxy::History& h = *recorded_.history;
  for (std::uint64_t i = h.first(); i <= h.last() && i != 0; ++i) {
    const consensus::EntryView entry = h.entry(i);
    EarlyPoint point;
    if (static_cast<EntryType>(entry.type) == EntryType::kEarlyPoint &&
        proxy::read_body(entry.payload, point)) {
      points.push_back(point);
    }
  }
  return points;
}

// Operations wait for the leader's clock limit: at 0 none begins before the tool is ready.
void Replay::before_server(dmt::Layout& layout) {
  if (holds()) dmt::set_leader_clock_limit(layout, 0);
}

Outcome Replay::server_started(pid_t pid, std::string& reason) {
  started_ = true;
  return tool_ == nullptr ? Outcome{Done{}} : tool_->start(pid, reason);
}

void Replay::output(const dmt::Layout& layout, const OutputHeader& header,
                    std::span<const std::byte> bytes) {
  const bool known = check_.difference().has_value();
  check_.output(header, bytes);
  if (!known) compare_turns(layout);
}

// The turns that led to a difference are still in the history of turns, traced or not.
void Replay::compare_turns(const dmt::Layout& layout) {
  const auto& difference = check_.difference();
  if (!difference || difference->own == 0) return;
  const RecentTurns recent = recent_turns(layout, difference->own);
  check_.compare_turns(recent.first, recent.turns);
}

void Replay::digest(ReplicaId self, const proxy::Digest& own, const proxy::Digests& logged) {
  const auto recorded = follows()                     ? proxy::most_common(logged)
                        : value(self) < logged.size() ? logged[value(self)]
                                                      : std::nullopt;
  if (recorded) check_.digest(own, *recorded);
}

bool Replay::releases_server_() {
  if (released_ || !started_ || (tool_ != nullptr && !tool_->ready())) return false;
  released_ = true;
  return true;
}

bool Replay::whole() const noexcept {
  return !follows() && value(to_) == recorded_.history->last() &&
         !recorded_.history->file().ends_early();
}

void Replay::report_progress(std::int64_t now_ns, Index applied) {
  if (!on_progress_ || now_ns - reported_ns_ < kProgressNs) return;
  reported_ns_ = now_ns;
  on_progress_(applied);
}

bool Replay::over() {
  if (tool_ == nullptr) return true;
  if (!over_) tool_->at_end();
  over_ = true;
  return !tool_->looks();
}

void Replay::stop() {
  if (tool_ != nullptr) tool_->stop();
}

bool Replay::at_rest(const dmt::Layout& layout, const ServerProgress& server) const {
  if (log_ == nullptr || !log_->at_end() || server.log_held) return false;
  if (server.reported) return true;
  if (server.exited || server.applied < last_for_server()) return false;
  const dmt::SchedulerState& s = layout.scheduler;
  if (s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle) return true;
  // The server's leader has not passed a later clock.
  return __atomic_load_n(&s.clock, __ATOMIC_ACQUIRE) >= dmt::leader_clock_limit(layout);
}

bool Replay::step(std::int64_t now_ns, dmt::Layout& layout, const ServerProgress& server) {
  report_progress(now_ns, server.applied);
  // With a stall rule only the stall watch sets the limit: no operation may pass it.
  const bool watched = layout.header.configuration.stall_rule != dmt::StallRule::kOff;
  if (releases_server_() && !watched) dmt::set_leader_clock_limit(layout, dmt::kNoClock);
  if (holds()) return false;
  if (!stops() && !reached_end_) {
    if (!at_rest(layout, server)) return false;
    if (const auto rest = server.server->rest_point()) {
      check_.at_rest(*rest, whole());
      compare_turns(layout);
    }
    if (!stops()) reached_end_ = true;
  }
  if (const auto& d = check_.difference(); d && stops()) {
    dmt::set_leader_clock_limit(layout, 0);  // permanent: the stall watch does not run any more
    spdlog::info("differs at entry {}: {}", d->index, d->text);
  }
  return over();
}

}  // namespace crane::node
