// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay.h"

#include <utility>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"

namespace crane::node {
namespace {
constexpr std::int64_t kTellEveryNs = 300'000'000;
}  // namespace
std::unique_ptr<consensus::Consensus> Replay::open_log(const consensus::Options& options,
                                                       Index behind, std::function<bool()> room) {
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
  log.room = std::move(room);
  log.callbacks = options.callbacks;
  auto opened = std::make_unique<ReplayLog>(std::move(log));
  log_ = opened.get();
  return opened;
}

void Replay::foretell(StallWatch& stalls) const {
  const proxy::History& h = *recorded_.history;
  for (std::uint64_t i = h.first(); i <= h.last() && i != 0; ++i) {
    const consensus::EntryView entry = h.entry(i);
    const auto type = static_cast<EntryType>(entry.type);
    if (type == EntryType::kPreempt) stalls.committed(type, entry.payload);
  }
  stalls.committed(EntryType::kPassed, proxy::bytes_of(PassedBody{dmt::kNoClock}));
}

Outcome Replay::server_started(pid_t pid, std::string& why) {
  started_ = true;
  return tool_ == nullptr ? Outcome{Done{}} : tool_->start(pid, why);
}

bool Replay::lets_go() {
  if (let_go_ || !started_ || (tool_ != nullptr && !tool_->ready())) return false;
  let_go_ = true;
  return true;
}

bool Replay::whole() const noexcept {
  return !follows() && value(to_) == recorded_.history->last() &&
         !recorded_.history->file().ends_early();
}

void Replay::progress(std::int64_t now_ns, Index applied) {
  if (!tell_ || now_ns - told_ns_ < kTellEveryNs) return;
  told_ns_ = now_ns;
  tell_(applied);
}

bool Replay::over() {
  if (tool_ == nullptr) return true;
  if (!over_) tool_->at_end();
  over_ = true;
  return !tool_->looks();
}

void Replay::stop_tool() {
  if (tool_ != nullptr) tool_->stop();
}

}  // namespace crane::node
