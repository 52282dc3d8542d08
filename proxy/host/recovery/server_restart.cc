// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/server_restart.h"

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
#include "proxy/host/control.h"
#include "proxy/host/recovery/starting_point.h"
#include "runtime/setup/program.h"

namespace crane::node {
namespace {

// A server that was told to end has so long.
constexpr std::int64_t kEndNs = 20'000'000'000;
// How often a server that should come to its end is looked at: nothing rings then.
constexpr std::int64_t kLookNs = 500'000;
// A new server that listens is watched for so long before clients are let in.
constexpr std::int64_t kTrialNs = 2'000'000'000;
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

// An answer, for an operator who wants another server; empty: it can begin.
std::string ServerRestart::why_not_now(const char* without_container) const {
  if (!parts_.config.container) return refused("unsupported", without_container);
  if (!busy() && packing_ns_ == 0) return "";
  return refused("busy", "the server is being started again already");
}

std::string ServerRestart::ask_upgrade(const nlohmann::json& request) {
  const std::string why_not = why_not_now(
      "without a container the server's files cannot be rolled back: stop the group and start it "
      "with the new command line");
  if (!why_not.empty()) return why_not;
  const auto words = nlohmann::json::parse(request.value("command", ""), nullptr, false);
  const bool good = words.is_array() && !words.empty() &&
                    std::all_of(words.begin(), words.end(),
                                [](const nlohmann::json& word) { return word.is_string(); });
  if (!good) return refused("bad_argument", "the command line is no list of words");
  const auto program = words[0].get<std::string>();
  if (const Outcome well = setup::check_program(program); !well.ok()) {
    return refused("bad_argument", well.error().text);
  }
  const RestartBody body{RestartBody::kEnd, request.value("seconds", 0U)};
  const nlohmann::json next{{"command", words}, {"program", setup::file_digest(program)}};
  return propose_end(body, next.dump());
}

std::string ServerRestart::ask_hand_over(const nlohmann::json& request) {
  if (parts_.config.host && !parts_.config.on_disk()) {
    return refused("unsupported",
                   "the log of this group is in the memory of its nodes, which all end: stop the "
                   "group and start it with the other build");
  }
  const std::string why_not = why_not_now(
      "without a container the server's files are not kept in a checkpoint: stop the group and "
      "start it with the other build");
  if (!why_not.empty()) return why_not;
  const auto to = request.value("to", "");
  if (to.empty()) return refused("bad_argument", "it does not say to which build");
  return propose_end({RestartBody::kEnd}, nlohmann::json{{"hand_over", to}}.dump());
}

// The answer to the operator.
std::string ServerRestart::propose_end(const RestartBody& body, const std::string& next) {
  std::vector<std::byte> payload(sizeof body + next.size());
  if (payload.size() > kDataBytesMax) return refused("bad_argument", "that is too long");
  std::memcpy(payload.data(), &body, sizeof body);
  std::memcpy(payload.data() + sizeof body, next.data(), next.size());
  const Result<Index> index = actions_.propose(actions_.input_grant(), payload);
  if (!index.ok()) return refused("busy", index.error().message());
  return nlohmann::json{{"ok", true},
                        {"replica", parts_.config.replica},
                        {"index", value(index.value())},
                        {"message", fmt::format("the server of every replica ends at entry {}",
                                                value(index.value()))}}
      .dump();
}

// The leader's word on a server on trial: it stays, or it did not listen in time.
void ServerRestart::judge_trial(const Seen& seen, std::int64_t now_ns) {
  if (!upgrade_.on_trial()) {
    trial_ns_ = 0;
    return;
  }
  if (trial_ns_ == 0) trial_ns_ = now_ns;
  if (listens_ns_ == 1) listens_ns_ = now_ns;  // it was not known when
  const View view = parts_.leadership.view();
  if (!seen.may_lead || judged_ == view || upgrade_.keeps()) return;
  const bool stays = listens_ns_ != 0 && now_ns - listens_ns_ >= kTrialNs;
  const bool late =
      listens_ns_ == 0 && now_ns - trial_ns_ >= upgrade_.patience_s() * 1'000'000'000LL;
  if (!stays && !late) return;
  const RestartBody body{stays ? RestartBody::kKeep : RestartBody::kEnd};
  if (actions_.propose(stays ? 0 : actions_.input_grant(), proxy::bytes_of(body)).ok()) {
    judged_ = view;
  }
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
  const bool may_lead = seen.may_lead || upgrade_.dead();  // it admits nothing, START neither
  if (!may_lead || begin_proposed_ == view || !(machine_.ended() || late)) return;
  if (!machine_.ended()) spdlog::warn("the server does not end: it is killed");
  const RestartBody body{RestartBody::kBegin};
  if (actions_.propose(0, proxy::bytes_of(body)).ok()) begin_proposed_ = view;  // RESTART-1
}

// --- every replica's ----------------------------------------------------------------------------

void ServerRestart::committed(const consensus::EntryView& entry) {
  RestartBody body;
  if (!proxy::read_body(entry.payload, body)) return;
  const Index at = entry.at.index;
  if (body.step == RestartBody::kKeep) {
    upgrade_.keep_committed(at);
    if (upgrade_.dead()) {
      actions_.failed(
          ExitStatus::kServerNotStarted,
          "the upgraded server starts on other replicas and not here: " + upgrade_.why());
    }
  } else if (body.step == RestartBody::kEnd && machine_.end_committed(at)) {
    take_next(entry, body);
    begin_proposed_ = View{};
    kept_ = fmt::format("{}/{}{}", parts_.config.replica_dir(), kKept, value(at));
    std::error_code ignored;
    std::filesystem::remove_all(kept_, ignored);
    parts_.monitor.keep_files(kept_);
    spdlog::info("entry {}: the server ends, and another one takes its place", value(at));
  } else if (body.step == RestartBody::kBegin) {
    // The leader's server is ahead, and has ended on trial: this one will, at the same turn.
    if (upgrade_.on_trial()) trial_failed("it ended by itself; see server.log", false);
    if (!machine_.begin_committed(at)) return;
    due_ = false;  // an earlier place that was not published in time
    contents_ = {};
    contents_.tier = checkpoint::Tier::kRestart;
    note_place(contents_.state, entry, parts_.group_facts());
  }
}

void ServerRestart::take_next(const consensus::EntryView& entry, const RestartBody& body) {
  if (upgrade_.on_trial() && !upgrade_.keeps()) {
    upgrade_.failed(fmt::format("it did not listen within {} s", upgrade_.patience_s()));
  }
  next_build_.clear();
  const auto rest = entry.payload.subspan(sizeof body);
  if (rest.empty() || upgrade_.open()) return;
  const auto* text = reinterpret_cast<const char*>(rest.data());
  const auto next = nlohmann::json::parse(text, text + rest.size(), nullptr, false);
  CRANE_ASSERT(next.is_object());
  if (next.contains("hand_over")) {
    next_build_ = next.at("hand_over").get<std::string>();
    CRANE_ASSERT(!next_build_.empty());
  } else {
    take_upgrade(next, entry.at.index, body.patience_s);
  }
}

void ServerRestart::take_upgrade(const nlohmann::json& next, Index at, std::uint32_t patience_s) {
  const auto words = next.at("command").get<replica::Upgrade::Words>();
  if (setup::file_digest(words[0]) != next.at("program").get<std::uint64_t>()) {
    return actions_.failed(ExitStatus::kDisagrees,
                           words[0] +
                               " is not the one that the leader upgrades the server to; "
                               "make it equal on all hosts");
  }
  upgrade_.asked(at, parts_.monitor.command(), words, patience_s);
  judged_ = View{};
}

void ServerRestart::admitted(Index at) {
  machine_.admitted(at);
  if (!upgrade_.admitted(at)) return;
  spdlog::info("entry {}: the upgraded server stays, clients are let in", value(at));
  if (parts_.config.keeps_files) parts_.monitor.keep_files(parts_.config.left_dir());
  CRANE_ASSERT(!upgrade_.undecided());  // UPGRADE-1
  for (const OutputHeader& header : std::exchange(kept_back_, {})) actions_.let_in(header);
}

bool ServerRestart::ended_at_turn() {
  if (upgrade_.undecided()) {
    trial_failed("it ended by itself; see server.log", false);
    return true;
  }
  return machine_.server_ended();
}

bool ServerRestart::failed_to_start(const std::string& why) {
  if (!upgrade_.undecided()) return false;
  spdlog::warn("the upgraded server does not start: {}", why);
  trial_failed(why, true);
  gone_ = true;
  return true;
}

// The leader asks for the end of it, whatever it asked for in this view before.
void ServerRestart::trial_failed(const std::string& why, bool dead) {
  if (machine_.state() == replica::Restarter::State::kIdle) begin_proposed_ = View{};
  upgrade_.failed(why, dead);
  machine_.ended_on_trial();
}

bool ServerRestart::keeps_back(const OutputHeader& header) {
  const bool listens = header.type == OutputType::kListen;
  if (!upgrade_.undecided() || (!listens && header.type != OutputType::kUnlisten)) return false;
  if (listens && listens_ns_ == 0) listens_ns_ = 1;
  kept_back_.push_back(header);
  return true;
}

bool ServerRestart::ended() {
  if (!machine_.ended() && machine_.state() != replica::Restarter::State::kWaiting) return false;
  gone_ = true;
  return true;
}

bool ServerRestart::is_over() {
  if (upgrade_.dead()) return true;
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
  if (upgrade_.dead()) {
    note_dead_server();
  } else {
    CRANE_ASSERT(parts_.layout.scheduler.applied_index.load() == value(machine_.at()));
    close_all();
    carried_ = dmt::carried_of(parts_.layout);  // RESTART-2
  }
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

// It took no turn and was given nothing that it admitted: what it would have carried on stands
// still, and what was for it is for no other.
void ServerRestart::note_dead_server() {
  carried_.admitted = contents_.state.at;
  carried_.view = contents_.state.at.view;
  parts_.slot0.forget();
}

// What follows gone() is begin_new_server().
std::int64_t ServerRestart::step(const Seen& seen, std::int64_t now_ns) {
  worth_ = seen.member;
  missing_until_ = seen.missed;
  propose_begin(seen, now_ns);
  judge_trial(seen, now_ns);
  ask_by_schedule(seen, now_ns);
  const bool runs = parts_.monitor.running() && parts_.monitor.pid() >= 0;
  const bool complete = handed_over_ || (runs && !upgrade_.undecided());
  if (due_ && complete && seen.publishes) publish(now_ns);
  std::int64_t due_ns = proxy::kNever;
  if (machine_.state() == replica::Restarter::State::kHolding) {
    machine_.step(upgrade_.dead() ? machine_.at() : parts_.applied());
    due_ns = now_ns + kLookNs;
  }
  const bool waits = machine_.state() == replica::Restarter::State::kEnding || upgrade_.undecided();
  if (waits) due_ns = std::min(due_ns, now_ns + kLookNs * 100);
  if (machine_.state() == replica::Restarter::State::kWaiting && gone_ && !seen.done)
    machine_.gone();
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
  const bool rolls_back = upgrade_.rolls_back();
  const Error kept = parts_.monitor.kept();
  if (kept.code != Code::kOk && !rolls_back) {
    return actions_.failed(ExitStatus::kServerNotStarted,
                           fmt::format("the server's files cannot be kept: {}", kept.what));
  }
  checkpoint::fault_point("restart.kept");
  NodeState& state = contents_.state;
  state.log_bytes = server_log_bytes(config);
  parts_.monitor.stop();
  if (const replica::Upgrade::Words* next = upgrade_.begun()) parts_.monitor.set_command(*next);
  state.command = parts_.monitor.command();
  if (!next_build_.empty()) return hand_over();
  kept_back_.clear();
  listens_ns_ = 0;
  if (config.keeps_files && !upgrade_.on_trial()) parts_.monitor.keep_files(config.left_dir());
  if (!renew_segment()) return;
  parts_.stalls.restore(state.passed, carried_.clock);
  const Index at = state.at.index;
  if (rolls_back) {  // UPGRADE-2
    std::error_code ignored;
    if (kept_ != upper_) std::filesystem::remove_all(kept_, ignored);
    spdlog::warn("entry {}: the upgrade is rolled back: {}", value(at), upgrade_.why());
  } else {
    forget_files();
    upper_ = kept_;
    spdlog::info("entry {}: a new server on the files of the one before", value(at));
  }
  due_ = worth_ && at > missing_until_;
  checkpoint::fault_point("restart.renewed");
  actions_.release_log();
}

// No server begins: the next one is another build's.
void ServerRestart::hand_over() {
  NodeState& state = contents_.state;
  forget_files();
  upper_ = kept_;
  handed_over_ = state.handed_over = true;
  due_ = worth_;  // also one that recovered since: no build goes on without
  checkpoint::fault_point("hand_over.kept");
  if (!due_) end_handed_over("this replica is new in the group");
}

void ServerRestart::end_handed_over(const std::string& why_not) {
  if (!handed_over_ || due_) return;
  checkpoint::fault_point("hand_over.published");
  const std::string kept =
      why_not.empty() ? "its files are kept" : "its files are not kept: " + why_not;
  actions_.failed(ExitStatus::kHandedOver,
                  fmt::format("the server ended at entry {}, where another build of Crane goes on "
                              "({}); {}",
                              value(machine_.at()), next_build_, kept));
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
    end_handed_over(why);
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
