// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/server_restart.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/fault_points.h"
#include "dmt/base/assert.h"
#include "dmt/connections.h"
#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/host/control.h"
#include "proxy/host/recovery/recovery.h"
#include "proxy/host/recovery/starting_point.h"
#include "proxy/replica/role/grants.h"
#include "runtime/setup/program.h"

namespace crane::node {

namespace change = replica::change;

namespace {

// Prefix of the directories for a server's files; the entry's index follows.
constexpr const char* kKept = "kept-";

// Removes the directories of a node that was killed during a restart: the next node has the files
// from a checkpoint.
void remove_kept(const std::string& replica_dir) {
  std::error_code ignored;
  for (const auto& one : std::filesystem::directory_iterator(replica_dir, ignored)) {
    if (one.path().filename().string().rfind(kKept, 0) != 0) continue;
    std::filesystem::remove_all(one.path(), ignored);
  }
}

change::Options options_of(const Config& config) {
  change::Options options;
  options.container = config.container;
  options.restarts = config.restart_checkpoints;
  options.log_ends = config.host && !config.on_disk();
  options.keeps_files = config.keeps_files;
  options.every_ns = config.restart_every_s * 1'000'000'000LL;
  return options;
}

// The error in a command line; "": none.
std::string check_command(const nlohmann::json& words) {
  const bool good = words.is_array() && !words.empty() &&
                    std::all_of(words.begin(), words.end(),
                                [](const nlohmann::json& word) { return word.is_string(); });
  if (!good) return "the command line is not a list of words";
  const Outcome well = setup::check_program(words[0].get<std::string>());
  return well.ok() ? "" : well.error().text;
}

// Parses the part of a kEnd entry after its body.
change::Next next_of(std::span<const std::byte> rest, const replica::Upgrade::Server& before) {
  const auto* text = reinterpret_cast<const char*>(rest.data());
  const auto json = nlohmann::json::parse(text, text + rest.size(), nullptr, false);
  CRANE_ASSERT(json.is_object());
  change::Next next;
  if (json.contains("hand_over")) {
    next.build = json.at("hand_over").get<std::string>();
    CRANE_ASSERT(!next.build.empty());
    return next;
  }
  next.before = before;
  next.server.command = json.at("command").get<std::vector<std::string>>();
  next.server.files = json.value("files", before.files);
  next.same_program =
      setup::file_digest(next.server.command[0]) == json.at("program").get<std::uint64_t>();
  return next;
}

ExitStatus status_of(change::Fail::Cause cause) {
  switch (cause) {
    case change::Fail::Cause::kServerNotStarted:
      return ExitStatus::kServerNotStarted;
    case change::Fail::Cause::kDisagrees:
      return ExitStatus::kDisagrees;
    case change::Fail::Cause::kNoSegment:
      break;
  }
  return ExitStatus::kNoSegment;
}

}  // namespace

ServerRestart::ServerRestart(ServerParts& parts, CheckpointPacker& packer, ServerDump& dump,
                             EventSink& events, std::string upper, const dmt::CarriedState& carried)
    : parts_(parts),
      packer_(packer),
      dump_(dump),
      events_(events),
      machine_(options_of(parts.config)),
      upper_(std::move(upper)),
      carried_(carried) {
  remove_kept(parts_.config.replica_dir());
}

// --- events -------------------------------------------------------------------------------------

void ServerRestart::step(const change::Event& event) { carry_out_all(event, monotonic_ns()); }

void ServerRestart::carry_out_all(const change::Event& event, std::int64_t now_ns) {
  machine_.step(event, now_ns);
  loop_.run(machine_, [this](auto& action) { carry_out(action); });
}

std::int64_t ServerRestart::step(change::Tick tick, std::int64_t now_ns) {
  tick.view = parts_.leadership.view();
  tick.runs = parts_.monitor.running() && parts_.monitor.pid() >= 0;
  tick.applied = parts_.applied();
  tick.inputs = parts_.intake.inputs_of_clients();
  carry_out_all(tick, now_ns);
  return machine_.deadline_ns();
}

std::string ServerRestart::answer_to(change::OperatorRequest asked) {
  step(std::move(asked));
  return std::exchange(answer_, {});
}

std::string ServerRestart::ask() { return answer_to({change::OperatorRequest::For::kRestart}); }

std::string ServerRestart::ask_upgrade(const control::Message& request) {
  change::OperatorRequest asked{change::OperatorRequest::For::kUpgrade};
  asked.patience_s = request.number<std::uint32_t>("seconds");
  const auto words = nlohmann::json::parse(request.text("command"), nullptr, false);
  asked.bad = check_command(words);
  if (asked.bad.empty()) {
    const std::uint64_t program = setup::file_digest(words[0].get<std::string>());
    asked.next =
        nlohmann::json{
            {"command", words},
            {"program", program},
            {"files", request.number<std::uint32_t>("files", parts_.monitor.started_as().files)}}
            .dump();
  }
  return answer_to(std::move(asked));
}

std::string ServerRestart::ask_hand_over(const control::Message& request) {
  change::OperatorRequest asked{change::OperatorRequest::For::kHandOver};
  asked.next = nlohmann::json{{"hand_over", request.text("to")}}.dump();
  return answer_to(std::move(asked));
}

void ServerRestart::committed(const consensus::EntryView& entry) {
  change::Committed committed;
  if (!proxy::read_body(entry.payload, committed.body)) return;
  committed.place = {entry.place(), entry.stamp_ns, parts_.owner.group_facts()};
  const auto rest = entry.payload.subspan(sizeof committed.body);
  if (!rest.empty()) committed.next = next_of(rest, parts_.monitor.started_as());
  step(std::move(committed));
}

bool ServerRestart::ended_at_turn() {
  const bool expected = machine_.expects_end();
  step(change::EndedAtTurn{});
  return expected;
}

bool ServerRestart::failed_to_start(const std::string& why) {
  const bool on_trial = machine_.upgrade().undecided();
  step(change::FailedToStart{why});
  return on_trial;
}

bool ServerRestart::holds_back(const OutputHeader& header, const ListenPlace& place) {
  if (!machine_.holds_back(header)) return false;
  step(change::PutOut{header, place});
  return true;
}

bool ServerRestart::ended() {
  const bool expected = machine_.expects_kernel_end();
  const Error kept = parts_.monitor.kept();
  step(change::EndedInKernel{kept.code == Code::kOk ? "" : kept.what});
  return expected;
}

void ServerRestart::packed(Index at, const std::string& why_not) {
  step(change::Packed{at, why_not});
}

// --- proposals, answers and messages ------------------------------------------------------------

void ServerRestart::carry_out(const change::Answer& answer) {
  answer_ = answer.refusal != nullptr ? refused(answer.refusal, answer.text)
                                      : nlohmann::json{{"ok", true},
                                                       {"replica", parts_.config.replica},
                                                       {"index", value(answer.index)},
                                                       {"message", answer.text}}
                                            .dump();
}

void ServerRestart::carry_out(const change::Propose& proposal) {
  std::vector<std::byte> payload(sizeof proposal.body + proposal.next.size());
  std::memcpy(payload.data(), &proposal.body, sizeof proposal.body);
  std::memcpy(payload.data() + sizeof proposal.body, proposal.next.data(), proposal.next.size());
  const GrantTurns grant = proposal.as_input ? parts_.owner.input_grant() : 0;
  const Result<Index> index = parts_.owner.propose(EntryType::kRestart, grant, payload);
  step(index.ok() ? change::Proposed{proposal.purpose, index.value(), ""}
                  : change::Proposed{proposal.purpose, Index{}, index.error().message()});
}

void ServerRestart::carry_out(const change::LetIn& kept) {
  parts_.owner.release_output(kept.output.header, kept.output.place, kept.last);
}

void ServerRestart::carry_out(const change::ReleaseLog&) { dump_.release_log(); }

void ServerRestart::carry_out(const change::Published& published) {
  events_.feed(replica::Packed{published.at, packer_.end(), false, published.took_ns, ""});
}

void ServerRestart::carry_out(const change::NotPublished& published) {
  events_.feed(replica::NotAdmitted{published.at, published.why});
}

void ServerRestart::carry_out(const change::Fail& failure) {
  parts_.owner.fail(status_of(failure.cause), failure.why);
}

void ServerRestart::carry_out(const change::EndHandedOver& end) {
  checkpoint::fault_point("hand_over.published");
  parts_.owner.fail(ExitStatus::kHandedOver, end.text);
}

void ServerRestart::carry_out(const change::LogMessage& words) {
  spdlog::log(words.warns ? spdlog::level::warn : spdlog::level::info, "{}", words.text);
}

// --- the server that ends -----------------------------------------------------------------------

void ServerRestart::carry_out(const change::KeepFiles& keep) {
  kept_ = fmt::format("{}/{}{}", parts_.config.replica_dir(), kKept, value(keep.at));
  std::error_code ignored;
  std::filesystem::remove_all(kept_, ignored);
  parts_.monitor.keep_files(kept_);
}

void ServerRestart::carry_out(const change::LeaveFiles&) {
  parts_.monitor.keep_files(parts_.config.left_dir());
}

void ServerRestart::carry_out(change::NotePlace& note) {
  contents_ = {};
  contents_.tier = checkpoint::Tier::kRestart;
  contents_.state.at = note.place.at.at;
  contents_.state.position = note.place.at.pos;
  contents_.state.stamp_ns = note.place.stamp_ns;
  contents_.state.facts = std::move(note.place.facts);
}

void ServerRestart::carry_out(const change::LookWhetherOver&) { step(change::Looked{is_over()}); }

bool ServerRestart::is_over() {
  parts_.scheduler_link.pump();
  if (!dmt::take_unowned_turn(parts_.layout)) return false;
  parts_.owner.drain_server();
  if (dmt::is_over(parts_.layout)) return true;
  dmt::release_turn(parts_.layout);
  return false;
}

// Closes the old server's connections and listeners; the next server does not depend on when.
void ServerRestart::close_all() {
  const dmt::Layout& w = parts_.layout;
  for (std::uint32_t i = 1; i <= w.scheduler.files_used; ++i) {
    const dmt::FileRecord& f = w.files[i];
    if (f.kind == dmt::FileKind::kConnection) {
      if (f.connection.loopback) continue;  // ends with the server
      parts_.owner.put_out_for_server(
          {OutputType::kClose, {}, value(f.connection.conn), 1, w.scheduler.clock}, {});
    } else if (f.kind == dmt::FileKind::kListener) {
      const ListenPlace place = dmt::place_of(f.listener);
      parts_.owner.put_out_for_server(
          {OutputType::kUnlisten, {}, f.listener.port, 1, w.scheduler.clock},
          std::as_bytes(std::span(&place, 1)));
    }
  }
}

// The server is over, and this node has the turn (RESTARTER-2).
void ServerRestart::carry_out(const change::NoteServer& note) {
  parts_.owner.drain_server();
  if (note.dead) {
    note_dead_server();
  } else {
    CRANE_ASSERT(parts_.applied() == contents_.state.at.index);
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
}

// The server took no turn and admitted no entry: its carried state stays as it was, and its pending
// entries are dropped.
void ServerRestart::note_dead_server() {
  carried_.admitted = contents_.state.at;
  carried_.view = contents_.state.at.view;
  parts_.scheduler_link.forget();
}

void ServerRestart::carry_out(const change::EndServer&) {
  const Outcome requested = parts_.monitor.end();
  if (!requested.ok()) step(change::EndRefused{requested.error().message()});
}

// --- the server that begins ---------------------------------------------------------------------

// After this the files of the old server no longer change.
void ServerRestart::stop_server() {
  checkpoint::fault_point("restart.kept");
  contents_.state.log_bytes = server_log_bytes(parts_.config);
  parts_.monitor.stop();
}

void ServerRestart::carry_out(const change::BeginServer& begin) {
  stop_server();
  if (begin.server) parts_.monitor.start_as(*begin.server);
  contents_.state.server = parts_.monitor.started_as();
  if (begin.leaves_files) parts_.monitor.keep_files(parts_.config.left_dir());
  if (const Outcome renewed = renew_segment(); !renewed.ok()) {
    return step(change::Begun{renewed.error().message()});
  }
  parts_.stalls.restore(contents_.state.passed, carried_.clock);
  if (begin.on_files_before) {  // UPGRADE-2
    std::error_code ignored;
    if (kept_ != upper_) std::filesystem::remove_all(kept_, ignored);
  } else {
    take_files();
  }
  checkpoint::fault_point("restart.renewed");
  step(change::Begun{});
}

void ServerRestart::carry_out(const change::HandOver&) {
  stop_server();
  contents_.state.server = parts_.monitor.started_as();
  contents_.state.handed_over = true;
  take_files();
  checkpoint::fault_point("hand_over.kept");
}

// Resets the segment, except for the carried state.
Outcome ServerRestart::renew_segment() {
  dmt::Layout& w = parts_.layout;
  const auto turns = std::make_unique<std::array<TurnRecord, dmt::kTurnHistory>>();
  std::copy(std::begin(w.turns), std::end(w.turns), turns->begin());
  const auto leading = w.scheduler.leading.load();
  const dmt::EarlyPoints early = w.early_points;
  if (Outcome renewed = parts_.segment.renew(parts_.config, packer_.idle()); !renewed.ok()) {
    return renewed;
  }
  std::copy(turns->begin(), turns->end(), std::begin(w.turns));
  w.scheduler.leading.store(leading);
  w.early_points = early;
  dmt::continue_from(w, carried_);
  return Done{};
}

// The next server begins with the files of the old one.
void ServerRestart::take_files() {
  forget_files();
  upper_ = kept_;
}

// Removes the old server's initial files, or files that were to be published.
void ServerRestart::forget_files() {
  if (upper_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(upper_, ignored);
}

// --- its checkpoint -----------------------------------------------------------------------------

// The new server runs: its container began with a copy of the files (RESTART-2).
void ServerRestart::carry_out(const change::Publish& publish) {
  checkpoint::fault_point("restart.running");
  const Outcome begun = this->publish(publish.at);
  if (!begun.ok()) step(change::Packed{publish.at, begun.error().message(), false});
}

Outcome ServerRestart::publish(Index at) {
  if (Outcome begun = packer_.begin(at); !begun.ok()) return begun;
  std::error_code failed;
  std::filesystem::rename(upper_, packer_.staging_upper(), failed);
  if (failed) {
    return failure(Code::kSystem, "rename", "move the server's files: " + failed.message());
  }
  return packer_.pack(std::move(contents_));
}

void ServerRestart::carry_out(const change::AbandonPacking&) {
  packer_.abandon();
  forget_files();
}

}  // namespace crane::node
