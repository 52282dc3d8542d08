// SPDX-License-Identifier: Apache-2.0
// The node's part in ending the server and starting another one on its files (restarter.h), on all
// replicas at one place of the log; and in coming back to such a place.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "checkpoint/fault_points.h"
#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/node/node.h"

namespace crane::node {
namespace {

// A server that was told to end has so long.
constexpr std::int64_t kEndNs = 20'000'000'000;
// How often a server that should come to its end is looked at: nobody rings then.
constexpr std::int64_t kLookNs = 500'000;
// Of the directory that a server's files are moved to; the entry's index follows.
constexpr const char* kKept = "kept-";

// What a node left that was killed in the middle of a restart: whoever comes back has its files
// from a checkpoint.
void remove_kept(const std::string& replica_dir) {
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator(replica_dir, ignored)) {
    if (one.path().filename().string().rfind(kKept, 0) != 0) continue;
    std::filesystem::remove_all(one.path(), ignored);
  }
}

}  // namespace

void Node::open_restarter() {
  RestartActions actions;
  actions.over = [this] { return is_over(); };
  actions.end = [this] { end_server(); };
  actions.begin = [this] { begin_server_anew(); };
  restarter_ = std::make_unique<Restarter>(std::move(actions));
  remove_kept(config_.replica_dir());
}

// --- the leader's -------------------------------------------------------------------------------

std::string Node::ask_for_restart() {
  if (!config_.restart_checkpoints) {
    return refused(
        "unsupported",
        "this group does not allow the server to be ended for a checkpoint: start it with "
        "--restart-checkpoints ([group] restart_checkpoints = true)");
  }
  if (restarter_->state() != Restarter::State::kIdle || restart_is_due_ ||
      packs_tier_ == checkpoint::Tier::kRestart) {
    return refused("busy", "the server is being started again already");
  }
  const RestartBody body{RestartBody::kEnd};
  const Result<Index> index =
      propose(EntryType::kRestart, grants_->input_grant(), proxy::bytes_of(body));
  if (!index.ok()) return refused("busy", index.error().what);
  restarted_ns_ = now_ns_;
  return nlohmann::json{
      {"ok", true},
      {"replica", config_.replica},
      {"index", value(index.value())},
      {"message", fmt::format("the server of every replica ends at entry {}, and starts again on "
                              "its files",
                              value(index.value()))}}
      .dump();
}

// By itself only where CRIU refuses, and if clients have done something since the last time.
void Node::restart_now_and_then() {
  if (!proxy_->leading() || config_.restart_every_s == 0 || refused_.empty()) return;
  const std::int64_t every_ns = config_.restart_every_s * 1'000'000'000LL;
  if (restarted_ns_ == 0) restarted_ns_ = now_ns_;
  if (now_ns_ - restarted_ns_ < every_ns) return;
  restarted_ns_ = now_ns_;
  const std::uint64_t inputs = intake_->inputs_of_clients();
  if (std::exchange(restarted_after_, inputs) == inputs) return;
  spdlog::info("a checkpoint is due, and CRIU refuses: {}", ask_for_restart());
}

void Node::propose_begin() {
  if (!restarter_->told()) {
    told_ns_ = 0;
    return;
  }
  if (told_ns_ == 0) told_ns_ = now_ns_;
  const bool late = now_ns_ - told_ns_ >= kEndNs;
  const bool leads = leadership_.admitted(applied()) && !end_.stopping();
  if (!leads || begin_proposed_ == leadership_.view() || !(restarter_->ended() || late)) return;
  if (!restarter_->ended()) spdlog::warn("the server does not end: it is killed");
  const RestartBody body{RestartBody::kBegin};
  if (propose(EntryType::kRestart, 0, proxy::bytes_of(body)).ok())
    begin_proposed_ = leadership_.view();
}

// --- every replica's ----------------------------------------------------------------------------

// Before the server gets the entry.
void Node::restart_at(const consensus::EntryView& entry) {
  RestartBody body;
  if (!proxy::read_body(entry.payload, body)) return;
  const Index at = entry.at.index;
  if (body.step == RestartBody::kEnd && restarter_->end_committed(at)) {
    begin_proposed_ = View{};
    restart_files_ = fmt::format("{}/{}{}", config_.replica_dir(), kKept, value(at));
    std::error_code ignored;
    std::filesystem::remove_all(restart_files_, ignored);
    guard_->keep_files(restart_files_);
    spdlog::info("entry {}: the server ends, and another one takes its place", value(at));
  } else if (body.step == RestartBody::kBegin && restarter_->begin_committed(at)) {
    restart_noted_ = {};
    restart_noted_.at = entry.at;
    restart_noted_.position = entry.end_pos;
    restart_noted_.stamp_ns = entry.stamp_ns;
    restart_noted_.facts = consensus_->group_facts();
  }
}

bool Node::is_over() {
  slot0_->pump();
  if (!dmt::take_lying_turn(*layout_)) return false;
  drain();
  if (dmt::is_over(*layout_)) return true;
  dmt::lay_turn_down(*layout_);
  return false;
}

// What clients had with it is over; nothing that the next one does depends on when.
void Node::end_server() {
  drain();
  dmt::Layout& w = *layout_;
  CRANE_ASSERT(w.scheduler.applied_index.load() == value(restarter_->at()));
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = w.files[i];
    if (f.kind == dmt::FileKind::kConnection) {
      on_output({OutputType::kClose, {}, value(f.connection.conn), 1, w.scheduler.clock}, {});
    } else if (f.kind == dmt::FileKind::kListener) {
      on_output({OutputType::kUnlisten, {}, f.listener.port, 0, w.scheduler.clock}, {});
    }
  }
  carried_ = dmt::carried_of(w);
  NodeState& n = restart_noted_;
  n.clock = carried_.clock;
  n.hash = carried_.hash;
  n.passed = std::max(stalls_->passed(), n.clock);
  n.first_start = intake_->first_start();
  n.verified = live_check_->alarms().unbroken();
  n.anew_from = live_check_->alarms().anew_from();
  n.entries = intake_->counts();
  n.outputs = outputs_->state();
  restart_digest_ = fmt::format("{:016x}", outputs_->digest());
  checkpoint::fault_point("restart.noted");
  if (server_gone_ || restarter_->ended()) return;  // the kernel is at it
  if (const Outcome told = guard_->end(); !told.ok()) {
    fail(ExitStatus::kServerNotStarted,
         fmt::format("the server cannot be ended: {}", told.error().what));
  }
}

// In every round of the loop; what follows gone() is begin_server_anew().
void Node::look_after_restart() {
  const Checkpointer::State taking = checkpointer_->state();
  const bool too_late =
      taking == Checkpointer::State::kPreparing || taking == Checkpointer::State::kResting;
  if (restarter_->state() != Restarter::State::kIdle && too_late) {
    checkpointer_->dumped(now_ns_, "the server is ended, and another one takes its place");
  }
  propose_begin();
  restart_now_and_then();
  publish_restart();
  restart_due_ns_ = proxy::kNever;
  if (restarter_->state() == Restarter::State::kHolding) {
    restarter_->step(applied());
    restart_due_ns_ = now_ns_ + kLookNs;
  }
  if (restarter_->state() == Restarter::State::kEnding) restart_due_ns_ = now_ns_ + kLookNs * 100;
  if (restarter_->state() == Restarter::State::kWaiting && server_gone_ && !end_.done()) {
    restarter_->gone();
  }
}

// Its files do not change any more.  The segment is as new, but for what goes on.
void Node::begin_server_anew() {
  server_gone_ = false;
  const Error kept = guard_->kept();
  if (kept.code != Code::kOk) {
    return fail(ExitStatus::kServerNotStarted,
                fmt::format("the server's files cannot be kept: {}", kept.what));
  }
  checkpoint::fault_point("restart.kept");
  std::error_code ignored;
  const auto size = std::filesystem::file_size(config_.replica_dir() + "/server.log", ignored);
  restart_noted_.log_bytes = ignored ? 0 : size;
  guard_->stop();
  if (config_.keeps_files) guard_->keep_files(config_.left_dir());
  const auto turns = std::make_unique<std::array<TurnRecord, dmt::kTurnHistory>>();
  std::copy(std::begin(layout_->turns), std::end(layout_->turns), turns->begin());
  const auto leading = layout_->scheduler.leading.load();
  if (const Outcome renewed = segment_->renew(config_); !renewed.ok()) {
    return fail(ExitStatus::kNoSegment, renewed.error().what);
  }
  std::copy(turns->begin(), turns->end(), std::begin(layout_->turns));
  layout_->scheduler.leading.store(leading);
  dmt::go_on_from(*layout_, carried_);
  stalls_->restore(restart_noted_.passed, carried_.clock);
  forget_files();
  server_upper_ = restart_files_;
  spdlog::info("entry {}: a new server on the files of the one before",
               value(restart_noted_.at.index));
  restart_is_due_ = mode_.member() && leadership_.role() != consensus::Role::kLearner &&
                    restart_noted_.at.index > catch_up_.missed();
  checkpoint::fault_point("restart.renewed");
  release_log();
}

// The files that a server began with, once it runs and they are not published.
void Node::forget_files() {
  if (restart_is_due_ || server_upper_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(server_upper_, ignored);
}

// When the new server runs: its container began as a copy of the files.
void Node::publish_restart() {
  if (!restart_is_due_ || !guard_->running() || guard_->pid() < 0) return;
  if (!packer_.idle() || checkpointer_->state() != Checkpointer::State::kIdle || staging_) return;
  restart_is_due_ = false;
  checkpoint::fault_point("restart.running");
  const auto give_up = [this](const std::string& why) {
    checkpointer_->refuse(restart_noted_.at.index, why);
    discard();
    forget_files();
  };
  auto staging = checkpoints_->begin(restart_noted_.at.index);
  if (!staging.ok()) return give_up(checkpoints_->why());
  staging_.emplace(std::move(staging).value());
  std::error_code failed;
  std::filesystem::rename(server_upper_, staging_->upper(), failed);
  if (failed) return give_up("move the server's files: " + failed.message());
  noted_ = restart_noted_;
  noted_files_ = std::make_unique<nlohmann::json>(nlohmann::json::object());
  noted_digest_ = restart_digest_;
  packs_tier_ = checkpoint::Tier::kRestart;
  packing_ns_ = now_ns_;
  if (const Outcome begun = publish(); !begun.ok()) {
    packs_tier_ = checkpoint::Tier::kCriu;
    give_up(begun.error().what);
  }
}

// --- coming back --------------------------------------------------------------------------------

Result<std::unique_ptr<Segment>> Node::make_segment() const {
  const bool dumped = !restored_from_.empty() && server_upper_.empty();
  return dumped ? Segment::adopt(config_, restored_from_) : Segment::create(config_);
}

nlohmann::json Node::carried_json() const {
  const dmt::Carried& c = carried_;
  return {{"admitted_view", value(c.admitted.view)},
          {"admitted", value(c.admitted.index)},
          {"view", value(c.view)},
          {"admissions", c.admissions},
          {"clock", c.clock},
          {"hash", c.hash},
          {"now_ns", c.now_ns},
          {"wall_offset_ns", c.wall_offset_ns},
          {"seed", c.seed}};
}

// Of a checkpoint without processes; false: it is not what carried_json() makes.
bool Node::take_carried(const nlohmann::json& state) {
  try {
    const nlohmann::json& from = state.at("carried");
    dmt::Carried c;
    c.admitted.view = View{from.at("admitted_view").get<std::uint64_t>()};
    c.admitted.index = Index{from.at("admitted").get<std::uint64_t>()};
    c.view = View{from.at("view").get<std::uint64_t>()};
    c.admissions = from.at("admissions");
    c.clock = from.at("clock");
    c.hash = from.at("hash");
    c.now_ns = from.at("now_ns");
    c.wall_offset_ns = from.at("wall_offset_ns");
    const auto seed = from.at("seed").get<std::array<std::uint64_t, 4>>();
    std::copy(seed.begin(), seed.end(), c.seed);
    carried_ = c;
    return c.admitted.index == restored_.at.index && c.clock == restored_.clock;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

// A new server began on the files of the checkpoint.
void Node::take_up_new_server() {
  restored_json_.clear();
  returned_.running = (monotonic_ns() - began_ns_) / 1000;
  spdlog::info("came back: unpacked in {:.1f} ms, a new server on the files after {:.1f}",
               static_cast<double>(returned_.unpacking) / 1000,
               static_cast<double>(returned_.running) / 1000);
  std::error_code ignored;  // what was unpacked has served
  std::filesystem::remove_all(restored_from_, ignored);
}

}  // namespace crane::node
