// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_change.h"

#include <string>
#include <utility>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kEndNs = 20 * kMs;
constexpr std::uint32_t kPatienceS = 1;

change::Options options_for(const Settings& settings) {
  change::Options o;
  o.container = o.restarts = true;
  o.log_ends = settings.hosts && !settings.on_disk;
  return o;
}

Upgrade::Server server_of(std::uint32_t version) { return {{std::to_string(version)}}; }

}  // namespace

ModelChange::ModelChange(ReplicaWorld& world, ModelReplica& replica, unsigned id,
                         std::uint32_t version)
    : world_(world),
      replica_(replica),
      id_(id),
      machine_(options_for(world.settings())),
      version_(version) {}

void ModelChange::step(const change::Event& event) {
  if (ended_) return;
  machine_.step(event, world_.now_ns());
  change::ActionList list;
  while (!ended_ && machine_.take_actions(list)) {
    for (const change::Action& action : list) {
      if (!world_.passes_point(id_) || ended_) return;
      std::visit([this](const auto& a) { on(a); }, action);
    }
  }
}

void ModelChange::ask(std::uint32_t version) {
  change::OperatorRequest asked;
  asked.kind = version == 0 ? change::OperatorRequest::For::kRestart
                            : change::OperatorRequest::For::kUpgrade;
  asked.patience_s = kPatienceS;
  asked_ = version;
  step(asked);
}

void ModelChange::committed(std::uint64_t at, std::uint32_t number) {
  change::Committed entry;
  entry.body = {number & 0xff, kPatienceS};
  entry.place.at = {{View{1}, Index{at}}, at * kEntryBytes};
  if (const std::uint32_t next = number >> 8; next != 0) {
    entry.next = change::Next{"", server_of(next), server_of(version_), true};
  }
  step(entry);
}

// Its main process ends where it was ordered to.
void ModelChange::admitted(std::uint64_t from, std::uint64_t upto) {
  for (std::uint64_t at = from + 1; !ended_ && at <= upto; ++at) {
    if (!machine_.awaits(Index{at})) continue;
    step(change::Admitted{Index{at}});
    if (machine_.under_way()) step(change::EndedAtTurn{});
  }
}

void ModelChange::server_started() {
  if (!undecided() || !listens(version_)) return;
  OutputHeader header{};
  header.type = OutputType::kListen;
  if (machine_.holds_back(header)) step(change::PutOut{header});
}

void ModelChange::packed(std::uint64_t at, const char* why_not) {
  step(change::Packed{Index{at}, why_not});
}

void ModelChange::tick() {
  if (ended_ns_ != 0 && world_.now_ns() >= ended_ns_) {
    ended_ns_ = 0;
    step(change::EndedInKernel{});
  }
  if (!ended_) step(replica_.change_tick());
}

void ModelChange::on(const change::Propose& action) {
  const bool ends = action.purpose == change::Purpose::kReplace;
  const LogEntry entry{LogEntry::Kind::kRestart, {}, number(action.body.step, ends ? asked_ : 0)};
  const std::uint64_t at = world_.log().propose(id_, entry);
  step(change::Proposed{action.purpose, Index{at}, at != 0 ? "" : "busy"});
}

void ModelChange::on(const change::LookWhetherOver&) { step(change::Looked{true}); }

void ModelChange::on(const change::NoteServer&) {
  hash_ = replica_.hash();
  replica_.end_server();
  ended_ns_ = world_.now_ns() + kEndNs;
}

void ModelChange::on(const change::BeginServer& action) {
  const bool stays = world_.settings().mutant == Mutant::kNoRollback && action.on_files_before;
  if (action.server && !stays) {
    version_ = static_cast<std::uint32_t>(std::stoul(action.server->command.front()));
  }
  world_.version_begins(id_, replica_.applied(), version_);
  replica_.begin_server(hash_);
  step(change::Begun{});
}

void ModelChange::on(const change::Publish& action) { replica_.publish_files(value(action.at)); }

void ModelChange::on(const change::Published& action) {
  replica_.receive(Packed{action.at, value(action.at) * kEntryBytes, false, 0, ""});
}

void ModelChange::on(const change::NotPublished& action) {
  replica_.receive(NotAdmitted{action.at, action.why});
}

void ModelChange::on(const change::LogMessage& action) {
  world_.trace_line("replica %u: %s", id_, action.text.c_str());
}

}  // namespace crane::replica::sim
