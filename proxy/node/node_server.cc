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
      if (recovery_->ended_at_turn()) break;
      exit_.at_turn(static_cast<int>(header.argument));
      layout_->scheduler.leading.store(0, std::memory_order_relaxed);
      break;
    case OutputType::kAdmitted:
      recovery_->admitted(Index{header.conn});
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
  std::string why;
  const Result<bool> revived = recovery_->server_started(why);
  if (!revived.ok()) fail(ExitStatus::kNoCheckpoint, why);
  if (revived.ok() && revived.value()) take_up_server();
  std::string reason;
  if (!mode_.server_started(pid, reason).ok()) fail(ExitStatus::kBadConfiguration, reason);
  supervisor_.server(pid);
  supervisor_.ready();
}

void Node::tell_exit() { supervisor_.exit(exit_.code(), exit_.by_signal()); }

void Node::server_ended(int status) {
  if (recovery_->ended()) return;
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

// --- recovery -----------------------------------------------------------------------------------

std::unique_ptr<Recovery> Node::make_recovery() {
  RecoveryActions actions;
  actions.on_event = [this] { awake(); };
  actions.propose = [this](EntryType type, GrantTurns grant, std::span<const std::byte> body) {
    return propose(type, grant, body);
  };
  actions.input_grant = [this] { return grants_->input_grant(); };
  actions.put_out = [this](const OutputHeader& header) { on_output(header, {}); };
  actions.refusal_changed = [this](const std::string& reason) {
    supervisor_.refused_dumps(reason);
  };
  actions.caught_up = [this] { progress_->caught_up(); };
  actions.failed = [this](ExitStatus status, const std::string& why) { fail(status, why); };
  return std::make_unique<Recovery>(loop_.base(), config_, leadership_, agreed_, mode_.member(),
                                    std::move(actions));
}

void Node::open_recovery() {
  recovery_->open({config_, *segment_, *layout_, *slot0_, *guard_, *outputs_, *stalls_, *intake_,
                   *live_check_, leadership_, exit_, [this] { drain(); },
                   [this] { return consensus_->group_facts(); }});
}

void Node::step_recovery() {
  Recovery::Seen seen;
  seen.serves = proxy_->leading();
  seen.admitted = leadership_.admitted(applied());
  seen.stopping = end_.stopping();
  seen.done = end_.done();
  recovery_->step(seen, now_ns_);
}

// At the checkpoint at which this replica begins.
void Node::take_up_state() {
  const StartingPoint& start = recovery_->start();
  const NodeState& s = start.state();
  if (!start.revives()) dmt::go_on_from(*layout_, start.carried());
  outputs_->restore(s.outputs, {value(s.at.index), s.clock, s.hash});
  stalls_->restore(s.passed, s.clock);
  intake_->begin_behind(s.at.index, s.first_start, s.entries);
  live_check_->restore(s.at.index, s.verified, s.anew_from);
  leadership_.committed(static_cast<std::int64_t>(s.stamp_ns), monotonic_ns());
  mode_.begin_behind(s.at.index, s.outputs.hash.open);
}

// The processes of a checkpoint are back: their threads sleep, and go on with the next entry.
void Node::take_up_server() {
  for (std::uint32_t i = 1; i <= layout_->scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_->files[i];
    if (f.kind != dmt::FileKind::kListener) continue;
    ask_for_listener(f.listener.port, f.listener.backlog);
    proxy_->output({OutputType::kListen, {}, f.listener.port, f.listener.backlog, 0}, {});
  }
  ports_->recover();
  dmt::lay_turn_down(*layout_);
}

// At the checkpoint's place, if there is one; of a new server that runs all inputs at the log's
// beginning.
Result<std::unique_ptr<consensus::Consensus>> Node::open_log(consensus::Options options) {
  options.checkpoint = recovery_->start().log_position();
  const Index behind = recovery_->start().state().at.index;
  const LogReader reader{[this] { return !slot0_->spooling(); },
                         [this] { return value(intake_->first_start()) != 0; }};
  auto opened = mode_.open_log(options, behind, reader);
  if (opened.ok() || opened.error().code != Code::kGone || config_.on_disk()) return opened;
  if (config_.keeps_log) return opened;
  spdlog::warn("what this replica missed is not in its own log any more: the others have it");
  options.forget = true;
  return mode_.open_log(std::move(options), behind, reader);
}

// The members, for crane-run, which starts the nodes of those that come.
void Node::tell_members() {
  if (supervisor_.present()) supervisor_.members(consensus_->status().members);
}

}  // namespace crane::node
