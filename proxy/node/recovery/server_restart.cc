// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovery/server_restart.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/fault_points.h"
#include "dmt/base/assert.h"
#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/grants.h"
#include "proxy/node/control.h"
#include "proxy/node/recovery/starting_point.h"

namespace crane::node {
namespace {

// A server that was told to end has so long.
constexpr std::int64_t kEndNs = 20'000'000'000;
// How often a server that should come to its end is looked at: nothing rings then.
constexpr std::int64_t kLookNs = 500'000;
// Of the directory that a server's files are moved to; the entry's index follows.
constexpr const char* kKept = "kept-";

// What a node left that was killed in the middle of a restart: the next one has its files from a
// checkpoint.
void remove_kept(const std::string& replica_dir) {
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator(replica_dir, ignored)) {
    if (one.path().filename().string().rfind(kKept, 0) != 0) continue;
    std::filesystem::remove_all(one.path(), ignored);
  }
}

}  // namespace

ServerRestart::ServerRestart(ServerParts& parts, CheckpointPacker& packer, std::string upper,
                             const dmt::Carried& carried, ServerRestartActions actions)
    : parts_(parts),
      packer_(packer),
      actions_(std::move(actions)),
      machine_(
          {[this] { return is_over(); }, [this] { end_server(); }, [this] { begin_new_server(); }}),
      upper_(std::move(upper)),
      carried_(carried) {
  remove_kept(parts_.config.replica_dir());
}

// --- the leader's -------------------------------------------------------------------------------

std::string ServerRestart::ask(std::int64_t now_ns) {
  if (!parts_.config.restart_checkpoints) {
    return refused(
        "unsupported",
        "this group does not allow the server to be ended for a checkpoint: start it with "
        "--restart-checkpoints ([group] restart_checkpoints = true)");
  }
  if (busy() || packing_ns_ != 0) {
    return refused("busy", "the server is being started again already");
  }
  const RestartBody body{RestartBody::kEnd};
  const Result<Index> index = actions_.propose(actions_.input_grant(), proxy::bytes_of(body));
  if (!index.ok()) return refused("busy", index.error().message());
  asked_ns_ = now_ns;
  return nlohmann::json{
      {"ok", true},
      {"replica", parts_.config.replica},
      {"index", value(index.value())},
      {"message", fmt::format("the server of every replica ends at entry {}, and starts again on "
                              "its files",
                              value(index.value()))}}
      .dump();
}

// By itself only where CRIU refuses, and if clients have done something since the last time.
void ServerRestart::ask_by_schedule(const Seen& seen, std::int64_t now_ns) {
  if (!seen.serves || parts_.config.restart_every_s == 0 || seen.refusal.empty()) return;
  const std::int64_t every_ns = parts_.config.restart_every_s * 1'000'000'000LL;
  if (asked_ns_ == 0) asked_ns_ = now_ns;
  if (now_ns - asked_ns_ < every_ns) return;
  asked_ns_ = now_ns;
  const std::uint64_t inputs = parts_.intake.inputs_of_clients();
  if (std::exchange(asked_after_, inputs) == inputs) return;
  spdlog::info("a checkpoint is due, and CRIU refuses: {}", ask(now_ns));
}

void ServerRestart::propose_begin(const Seen& seen, std::int64_t now_ns) {
  if (!machine_.told()) {
    ending_ns_ = 0;
    return;
  }
  if (ending_ns_ == 0) ending_ns_ = now_ns;
  const bool late = now_ns - ending_ns_ >= kEndNs;
  const View view = parts_.leadership.view();
  if (!seen.may_lead || begin_proposed_ == view || !(machine_.ended() || late)) return;
  if (!machine_.ended()) spdlog::warn("the server does not end: it is killed");
  const RestartBody body{RestartBody::kBegin};
  if (actions_.propose(0, proxy::bytes_of(body)).ok()) begin_proposed_ = view;  // RESTART-1
}

// --- every replica's ----------------------------------------------------------------------------

void ServerRestart::committed(const consensus::EntryView& entry) {
  RestartBody body;
  if (!proxy::read_body(entry.payload, body)) return;
  const Index at = entry.at.index;
  if (body.step == RestartBody::kEnd && machine_.end_committed(at)) {
    begin_proposed_ = View{};
    kept_ = fmt::format("{}/{}{}", parts_.config.replica_dir(), kKept, value(at));
    std::error_code ignored;
    std::filesystem::remove_all(kept_, ignored);
    parts_.monitor.keep_files(kept_);
    spdlog::info("entry {}: the server ends, and another one takes its place", value(at));
  } else if (body.step == RestartBody::kBegin && machine_.begin_committed(at)) {
    due_ = false;  // an earlier place that was not published in time
    contents_ = {};
    contents_.tier = checkpoint::Tier::kRestart;
    note_place(contents_.state, entry, parts_.group_facts());
  }
}

bool ServerRestart::ended() {
  if (!machine_.ended() && machine_.state() != Restarter::State::kWaiting) return false;
  gone_ = true;
  return true;
}

bool ServerRestart::is_over() {
  parts_.slot0.pump();
  if (!dmt::take_unowned_turn(parts_.layout)) return false;
  parts_.drain();
  if (dmt::is_over(parts_.layout)) return true;
  dmt::give_up_turn(parts_.layout);
  return false;
}

// What clients had with it is over; nothing that the next one does depends on when.
void ServerRestart::close_all() {
  const dmt::Layout& w = parts_.layout;
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = w.files[i];
    if (f.kind == dmt::FileKind::kConnection) {
      if (f.connection.loopback) continue;  // it ends with the server
      actions_.put_out({OutputType::kClose, {}, value(f.connection.conn), 1, w.scheduler.clock});
    } else if (f.kind == dmt::FileKind::kListener) {
      actions_.put_out({OutputType::kUnlisten, {}, f.listener.port, 1, w.scheduler.clock});
    }
  }
}

// REQUIRES: the server is over, and this node has the turn (RESTARTER-2).
void ServerRestart::end_server() {
  parts_.drain();
  CRANE_ASSERT(parts_.layout.scheduler.applied_index.load() == value(machine_.at()));
  close_all();
  carried_ = dmt::carried_of(parts_.layout);  // RESTART-2
  NodeState& state = contents_.state;
  state.passed = std::max(parts_.stalls.passed(), carried_.clock);
  note_parts(state, parts_, carried_.clock, carried_.hash);
  contents_.output_digest = fmt::format("{:016x}", parts_.outputs.digest());
  contents_.carried = to_json(carried_);
  contents_.files = nlohmann::json::object();
  checkpoint::fault_point("restart.noted");
  if (gone_ || machine_.ended()) return;  // the kernel is at it
  if (const Outcome told = parts_.monitor.end(); !told.ok()) {
    actions_.failed(ExitStatus::kServerNotStarted,
                    fmt::format("the server cannot be ended: {}", told.error().message()));
  }
}

// What follows gone() is begin_new_server().
std::int64_t ServerRestart::step(const Seen& seen, std::int64_t now_ns) {
  worth_ = seen.member;
  missing_until_ = seen.missed;
  propose_begin(seen, now_ns);
  ask_by_schedule(seen, now_ns);
  if (due_ && parts_.monitor.running() && parts_.monitor.pid() >= 0 && seen.publishes) {
    publish(now_ns);
  }
  std::int64_t due_ns = proxy::kNever;
  if (machine_.state() == Restarter::State::kHolding) {
    machine_.step(parts_.applied());
    due_ns = now_ns + kLookNs;
  }
  if (machine_.state() == Restarter::State::kEnding) due_ns = now_ns + kLookNs * 100;
  if (machine_.state() == Restarter::State::kWaiting && gone_ && !seen.done) machine_.gone();
  return due_ns;
}

// The segment is as new, but for what goes on.
bool ServerRestart::renew_segment() {
  dmt::Layout& w = parts_.layout;
  const auto turns = std::make_unique<std::array<TurnRecord, dmt::kTurnHistory>>();
  std::copy(std::begin(w.turns), std::end(w.turns), turns->begin());
  const auto leading = w.scheduler.leading.load();
  if (const Outcome renewed = parts_.segment.renew(parts_.config, packer_.idle()); !renewed.ok()) {
    actions_.failed(ExitStatus::kNoSegment, renewed.error().message());
    return false;
  }
  std::copy(turns->begin(), turns->end(), std::begin(w.turns));
  w.scheduler.leading.store(leading);
  dmt::go_on_from(w, carried_);
  return true;
}

// The files of the old server do not change any more.
void ServerRestart::begin_new_server() {
  gone_ = false;
  const Config& config = parts_.config;
  const Error kept = parts_.monitor.kept();
  if (kept.code != Code::kOk) {
    return actions_.failed(ExitStatus::kServerNotStarted,
                           fmt::format("the server's files cannot be kept: {}", kept.what));
  }
  checkpoint::fault_point("restart.kept");
  NodeState& state = contents_.state;
  state.log_bytes = server_log_bytes(config);
  parts_.monitor.stop();
  if (config.keeps_files) parts_.monitor.keep_files(config.left_dir());
  if (!renew_segment()) return;
  parts_.stalls.restore(state.passed, carried_.clock);
  forget_files();
  upper_ = kept_;
  const Index at = state.at.index;
  spdlog::info("entry {}: a new server on the files of the one before", value(at));
  due_ = worth_ && at > missing_until_;
  checkpoint::fault_point("restart.renewed");
  actions_.release_log();
}

// The files that a server began with, once it runs and they are not published.
void ServerRestart::forget_files() {
  if (due_ || upper_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(upper_, ignored);
}

// The new server runs: its container began as a copy of the files (RESTART-2).
void ServerRestart::publish(std::int64_t now_ns) {
  due_ = false;
  checkpoint::fault_point("restart.running");
  const Index at = contents_.state.at.index;
  const auto give_up = [&](const std::string& why) {
    actions_.refused(at, why);
    packer_.abandon();
    forget_files();
  };
  if (const Outcome begun = packer_.begin(at); !begun.ok()) return give_up(begun.error().message());
  std::error_code failed;
  std::filesystem::rename(upper_, packer_.staging_upper(), failed);
  if (failed) return give_up("move the server's files: " + failed.message());
  packing_ns_ = now_ns;
  if (const Outcome begun = packer_.pack(std::move(contents_)); !begun.ok()) {
    packing_ns_ = 0;
    give_up(begun.error().message());
  }
}

}  // namespace crane::node
