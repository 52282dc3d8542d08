// SPDX-License-Identifier: Apache-2.0
// The node's part in running a recorded history again (replay.h).
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "dmt/stall.h"
#include "proxy/node/node.h"
#include "proxy/node/turns.h"
#include "proxy/replay/replay.h"

namespace crane::node {

void Node::check_output(const OutputHeader& header, std::span<const std::byte> bytes) {
  proxy::ReplayCheck& check = replay_->check();
  const bool known = check.difference().has_value();
  check.output(header, bytes);
  if (known || !check.difference() || check.difference()->own == 0) return;
  // The turns that led there are still remembered, whether they are traced or not.
  const RecentTurns recent = recent_turns(*layout_, check.difference()->own);
  check.compare_turns(recent.first, recent.turns);
}

// Operations wait for what the node has told: none is begun before the tool is there.
void Node::hold_for_tool() {
  if (replay_->holds()) dmt::tell_clock(*layout_, 0);
}

void Node::replay_server_started(pid_t pid) {
  std::string why;
  const Outcome started = replay_->server_started(pid, why);
  if (!started.ok()) fail(ExitStatus::kBadConfiguration, why);
}

// Not before the tool is there, and not behind a difference.
bool Node::watches_stalls() const noexcept { return replay_ == nullptr || replay_->runs(); }

bool Node::replay_at_rest() {
  if (!replay_->at_end() || !held_.empty()) return false;
  if (exit_reported_) return true;
  if (server_exited_ || applied() < replay_->last_for_server()) return false;
  const dmt::SchedulerState& s = layout_->scheduler;
  if (s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle) return true;
  // Where its leader told nobody to go on.
  return __atomic_load_n(&s.clock, __ATOMIC_ACQUIRE) >= dmt::told_clock(*layout_);
}

void Node::look_after_replay() {
  if (done_) return;
  replay_->progress(now_ns_, applied());
  // With a stall rule the clock that is told is the watch's alone: no operation may come past it.
  const bool watched = layout_->header.configuration.stall_rule != dmt::StallRule::kOff;
  if (replay_->lets_go() && !watched) dmt::tell_clock(*layout_, dmt::kNoClock);
  if (replay_->holds()) return;
  if (!replay_->stops() && !replay_->reached_end()) {
    if (!replay_at_rest()) return;
    if (const auto rest = rest_point()) {
      replay_->check().at_rest(*rest, replay_->whole());
      if (const auto& d = replay_->check().difference(); d && d->own != 0) {
        const RecentTurns recent = recent_turns(*layout_, d->own);
        replay_->check().compare_turns(recent.first, recent.turns);
      }
    }
    if (!replay_->stops()) replay_->reach_end();
  }
  if (const auto& d = replay_->check().difference(); d && replay_->stops()) {
    dmt::tell_clock(*layout_, 0);  // it stays where it is: the stall watch is not asked any more
    spdlog::info("differs at entry {}: {}", d->index, d->text);
  }
  if (replay_->over()) done_ = true;
}

}  // namespace crane::node
