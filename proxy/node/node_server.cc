// SPDX-License-Identifier: Apache-2.0
// The node and its server: what the server puts out, its start and its end.
#include "proxy/node/node.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "dmt/scheduler.h"
#include "proxy/node/line_ups.h"
#include "proxy/node/server_maps.h"

namespace crane::node {
namespace {

// How long to stay after the server's end, so that followers learn what was committed.
constexpr std::int64_t kLingerNs = 3'000'000'000;
// Where Config::test_only_flip puts its wrong byte.
constexpr std::uint64_t kFlipAfterBytes = 20'000;

}  // namespace

std::size_t Node::drain() {
  return slot0_->drain([this](const OutputHeader& header, std::span<const std::byte> bytes) {
    on_output(header, bytes);
  });
}

void Node::on_output(const OutputHeader& header, std::span<const std::byte> bytes) {
  std::vector<std::byte> wrong;
  if (config_.test_only_flip && !flipped_ && header.type == OutputType::kBytes &&
      outputs_->bytes() > kFlipAfterBytes) {
    flipped_ = true;
    wrong.assign(bytes.begin(), bytes.end());
    wrong.back() ^= std::byte{1};
    bytes = wrong;
    spdlog::warn("test only: a bit of the output behind entry {} is wrong", value(applied()));
  }
  files_.move(applied(), header.clock);  // before a client hears of it (LAST-3)
  outputs_->output(header, bytes);
  mode_.output(*layout_, header, bytes);
  switch (header.type) {
    case OutputType::kListen:
      ask_for_listener(static_cast<std::uint16_t>(header.conn), header.argument);
      break;
    case OutputType::kPortWanted:
      ports_->wanted(static_cast<std::uint16_t>(header.conn), header.argument);
      return awake();  // the bind waits
    case OutputType::kExit:
      guard_->expect_end();
      if (restarter_->server_ended()) break;
      exit_.at_turn(static_cast<int>(header.argument));
      layout_->scheduler.leading.store(0, std::memory_order_relaxed);
      break;
    case OutputType::kAdmitted:
      restarter_->admitted(Index{header.conn});
      return live_check_->admitted(header, !end_.done(), now_ns_);
    case OutputType::kTurns:
      return;  // no client's
    default:
      break;
  }
  proxy_->output(header, bytes);
}

void Node::server_started(pid_t pid) {
  spdlog::info("server started, pid {}", pid);
  files_.server_started(applied(), layout_->scheduler.clock);
  if (!restored_json_.empty()) server_upper_.empty() ? take_up_server() : take_up_new_server();
  std::string reason;
  if (!mode_.server_started(pid, reason).ok()) fail(ExitStatus::kBadConfiguration, reason);
  supervisor_.server(pid);
  supervisor_.ready();
}

void Node::tell_exit() { supervisor_.exit(exit_.code(), exit_.by_signal()); }

void Node::server_ended(int status) {
  if (restarter_->ended() || restarter_->state() == Restarter::State::kWaiting) {
    server_gone_ = true;
    return;
  }
  if (!exit_.exited()) {
    fail(ExitStatus::kServerDied,
         WIFSIGNALED(status)
             ? fmt::format("the server was killed by signal {} on this replica only",
                           WTERMSIG(status))
             : fmt::format("the server ended with status {} outside the schedule",
                           WEXITSTATUS(status)));
    return;
  }
  exit_.report();
  spdlog::info("the server ended with status {}", exit_.code());
  warn_of_missing_line_ups(config_, *layout_);
  guard_->stop();
  tell_exit();
  end_.linger_until(monotonic_ns() + kLingerNs);
}

// Where the schedule stands at the end, if nobody runs: what followed the last admission is then
// compared, too.
std::optional<proxy::SchedulePoint> Node::rest_point() {
  drain();
  const dmt::SchedulerState& s = layout_->scheduler;
  if (s.holder.load(std::memory_order_acquire) != dmt::kHolderIdle) return std::nullopt;
  const proxy::SchedulePoint rest{value(applied()), s.clock, s.hash};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (s.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle) return std::nullopt;
  return rest;
}

void Node::note_rest() {
  if (slot0_ == nullptr || outputs_ == nullptr || !end_.in_order()) return;
  const auto rest = rest_point();
  if (!rest) return;
  outputs_->at_rest(*rest);
  if (layout_->header.configuration.trace == 0) return;
  const dmt::SchedulerState& s = layout_->scheduler;
  const std::uint64_t first = (s.clock + 1) / dmt::kTurnsPerRecord * dmt::kTurnsPerRecord;
  outputs_->turns(first, std::as_bytes(std::span(&layout_->turns[first % dmt::kTurnHistory],
                                                 s.clock + 1 - first)));
  outputs_->names({layout_->operation_names, sizeof layout_->operation_names},
                  maps_of(guard_->pid()));
}

}  // namespace crane::node
