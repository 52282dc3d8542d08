// SPDX-License-Identifier: Apache-2.0
// The inputs and the actions of a replica's machine.
#include <algorithm>
#include <limits>

#include "proxy/sim/replicas/model_replica.h"
#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kBeginNs = 20 * kMs;
constexpr std::int64_t kPrepareNs = 30 * kMs, kDumpNs = 40 * kMs, kPackNs = 200 * kMs;

ReplicaId id_of(unsigned id) { return ReplicaId{static_cast<std::uint8_t>(id)}; }

}  // namespace

void ModelReplica::look_at_members() {
  full_ns_ = !serves() || !log_is_full() ? 0 : full_ns_ != 0 ? full_ns_ : world_.now_ns();
  const ModelLog& log = world_.log();
  report_.emplace();
  report_->acceptor_only = machine_->acceptor_only();
  report_->waits_behind = machine_->held();
  report_->lacks = log.acceptor(id_).lacks;
  report_->recovers = machine_->catches_up();
  report_->held = waits_at_limit();
  report_->lag_ms = behind_ns() / kMs;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const Acceptor& a = log.acceptor(id);
    MemberView& m = members_[id];
    const bool leads = log.leader() == id_;
    m.role = a.votes ? consensus::MemberRole::kVoter : consensus::MemberRole::kReturning;
    m.connected = a.connected();
    m.streaming = leads && a.streaming;
    m.needs_checkpoint = leads && a.lacks;
    m.report = a.process ? world_.replica(id).report() : std::nullopt;
    m.lag_ns = leads && m.report ? m.report->lag_ms * kMs : 0;
  }
}

Facts ModelReplica::facts() {
  const ModelLog& log = world_.log();
  const Acceptor& a = log.acceptor(id_);
  Facts f;
  f.now_ns = world_.now_ns();
  f.leads = log.leader() == id_;
  f.role = f.leads                  ? consensus::Role::kLeader
           : a.votes && !a.amnesiac ? consensus::Role::kFollower
                                    : consensus::Role::kLearner;
  f.view = log.view();
  f.leader = id_of(log.leader());
  f.started = f.leads && start_ != 0;
  f.admitted = f.serves = serves();
  f.members = members_;
  f.committed = Index{std::min(log.committed(), std::max(entries_, a.last))};
  f.needs_checkpoint = a.lacks;
  f.taken = Index{entries_};
  f.for_server = Index{for_server_};
  f.log_end = entries_ * kEntryBytes;
  f.inputs = entries_;
  f.trusted = Index{verified_};
  f.applied = Index{applied()};
  f.restarts = change_->busy();
  f.packs = work_.kind != Work::Kind::kIdle;
  return f;
}

void ModelReplica::feed(const Event& event) {
  events_.push_back(event);
  if (carries_out_) return;
  carries_out_ = true;
  while (!events_.empty() && machine_) {
    const Event next = std::move(events_.front());
    events_.pop_front();
    machine_->step(next, facts());
    for (const Action& action : machine_->take_actions()) {
      const bool counts =
          !std::holds_alternative<LogMessage>(action) && !std::holds_alternative<Look>(action);
      if (counts && !world_.passes_point(id_)) break;
      std::visit([this](const auto& a) { on(a); }, action);
      if (!machine_) break;
    }
  }
  carries_out_ = false;
}

// --- the group ----------------------------------------------------------------------------------

void ModelReplica::on(const SendNote& action) {
  const unsigned to = value(action.to);
  if (to >= world_.replicas() || to == id_) return;
  const ReplicaId from{static_cast<std::uint8_t>(id_)};
  ModelReplica& other = world_.replica(to);
  if (const auto* m = std::get_if<CommittedMessage>(&action.message)) {
    other.receive(PeerCommitted{from, *m});
  } else if (const auto* n = std::get_if<CheckpointNote>(&action.message)) {
    other.receive(PeerCheckpoint{*n});
  } else if (const auto* w = std::get_if<CheckpointWish>(&action.message)) {
    other.receive(PeerWish{from, *w});
  } else if (const auto* r = std::get_if<WishRefusal>(&action.message)) {
    other.receive(PeerWishRefused{from, *r});
  } else {
    other.receive(PeerRefusal{std::get<RefusalMessage>(action.message)});
  }
}

void ModelReplica::on(const ProposeCheckpoint& action) {
  const std::uint64_t at =
      world_.log().propose(id_, {LogEntry::Kind::kCheckpoint, {}, value(action.taker)});
  world_.trace_line("replica %u asks replica %u for a checkpoint at entry %llu", id_,
                    value(action.taker), static_cast<unsigned long long>(at));
  feed(at != 0 ? Proposed{Index{at}, ""} : Proposed{Index{}, "busy"});
}

void ModelReplica::on(const Restart& action) {
  if (!spares()) world_.violate("SPARE: a restart takes the majority away");
  world_.trace_line("replica %u: %s", id_, action.why.c_str());
  end(node::ExitStatus::kTooFarBehind);
}

void ModelReplica::on(const FindCheckpoints& action) {
  Found found;
  found.purpose = action.purpose;
  for (const StoredCheckpoint* one : world_.hosts().to_try(id_)) {
    found.checkpoints.push_back(
        {{{View{1}, Index{one->at}}, one->at * kEntryBytes}, one->by == id_, one->distrusted()});
    found.distrusted_behind =
        found.distrusted_behind || (one->distrusted() && !one->damaged && one->at > begins_);
  }
  found.fetching = fetch_.ends_ns != 0;
  found.unusable = unusable_;
  feed(found);
}

void ModelReplica::on(const FetchCheckpoint& action) {
  if (world_.hosts().several()) begin_fetch(value(action.behind));
}

void ModelReplica::on(const LogMessage& action) {
  world_.trace_line("replica %u: %s", id_, action.text.c_str());
}

void ModelReplica::on(const KeepLog& action) {
  if (world_.settings().on_disk || world_.hosts().several()) return;
  const auto from = action.from ? std::optional(value(action.from->at.index)) : std::nullopt;
  world_.log().keep(id_, from);
  if (!from && !machine_->acceptor_only()) world_.log_given_up();
}

void ModelReplica::on(const ReportLag& action) {
  world_.log().report_lag(id_, action.ns, value(action.ran));
}

void ModelReplica::on(const ReportCaughtUp&) {
  if (!server_ran_) world_.violate("CAUGHT: the server of a replica does not run yet");
  // If none leads for a while because all began together, it relies on its own log.
  if (began_ns_ > world_.unled_ns() && applied() < committed_at_start_)
    world_.violate("CAUGHT: a replica lacks what was committed when it began");
  world_.log().report_lag(id_, 0, applied());
  world_.caught_up(id_);
}

void ModelReplica::on(const ReportRefusal& action) {
  world_.trace_line("replica %u: %s", id_,
                    action.reason.empty() ? "CRIU dumps the server" : action.reason.c_str());
  world_.refusal_reported(id_, action.reason);
}

// According to its last information the group serves without this replica if it did with it; if no
// other replica connects, it may restart after a while.
bool ModelReplica::spares() const {
  const ModelLog& log = world_.log();
  const unsigned leader = log.leader();
  if (leader == kNone || leader == id_ || !world_.replica(leader).serves()) return true;
  unsigned others = 0, voters = 0;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const MemberView& m = members_[id];
    voters += m.votes() ? 1 : 0;
    others += id != id_ && m.votes() && m.connected && m.report && !m.report->lacks ? 1 : 0;
  }
  const bool votes = members_[id_].votes() && log.acceptor(id_).streaming;
  const bool needed = votes && (others + 1) * 2 > voters;
  return !needed || others * 2 > voters || world_.now_ns() - began_ns_ >= kSpareNs;
}

// --- another server replaces this one -------------------------------------------------

// As Recovery::step_restart() in proxy/host.
change::Tick ModelReplica::change_tick() const {
  const ModelLog& log = world_.log();
  const Acceptor& a = log.acceptor(id_);
  change::Tick t;
  t.view = log.view();
  t.serves = serves();
  t.may_lead = log.leader() == id_ && start_ != 0 && applied() >= start_;
  t.publishes = work_.kind == Work::Kind::kIdle && machine_->idle();
  t.member = a.votes && !a.amnesiac;
  t.refused = !machine_->refusal().empty();
  t.runs = server_.runs();
  t.missed = machine_->missed();
  t.applied = Index{applied()};
  t.inputs = entries_;
  return t;
}

void ModelReplica::end_server() {
  server_.end();
  if (proxy_) proxy_->end_all(applied());
}

void ModelReplica::begin_server(std::uint64_t hash) {
  server_fails_ = false;
  server_.start_again(hash, world_.now_ns() + kBeginNs);
}

void ModelReplica::publish_files(std::uint64_t at) {
  packed_at_ = at;
  packed_hash_ = change_->noted();
  packed_version_ = change_->version();
  packed_clients_ = nullptr;
  work_ = {Work::Kind::kPackFiles, world_.now_ns() + kPackNs};
}

// --- this replica's checkpoint
// -------------------------------------------------------------------------

void ModelReplica::on(const Prepare&) {
  if (!server_.runs()) return feed(Dumped{"no server runs", "", false});
  work_ = {Work::Kind::kPrepare, world_.now_ns() + kPrepareNs};
}

void ModelReplica::on(const Look& action) {
  const bool admitted = Index{applied()} >= action.at;
  const bool computes = world_.slow(id_) || world_.server_stopped(id_) || server_.computes();
  feed(Looked{admitted, computes ? "a thread computes" : ""});
}

void ModelReplica::on(const Slide&) {
  if (delivered_ >= entries_) return feed(Slid{});
  give();
  held_ = true;
  feed(Slid{Index{delivered_}});
}

void ModelReplica::on(const Dump&) {
  if (const char* why = world_.refuses_dump()) {
    return feed(Dumped{why, world_.refuses_for_good() ? why : "", false});
  }
  work_ = {Work::Kind::kDump, world_.now_ns() + kDumpNs};
}

void ModelReplica::on(const Pack&) {
  if (world_.disk_full()) {
    return feed(Packed{Index{}, 0, true, 0, "the disk is full"});
  }
  work_ = {Work::Kind::kPack, world_.now_ns() + kPackNs};
}

std::string ModelReplica::describe() const {
  const Acceptor& a = world_.log().acceptor(id_);
  std::string text = "r" + std::to_string(id_) + ": ";
  text += life_ == Life::kDown      ? "down"
          : life_ == Life::kFetches ? "fetches"
          : life_ == Life::kStopped ? "stopped"
                                    : "up";
  if (a.amnesiac) text += ", lost its memory";
  if (machine_ && machine_->acceptor_only()) text += ", votes only";
  if (machine_ && machine_->catches_up()) text += ", catches up";
  if (a.lacks) text += ", lacks entries";
  if (log_is_full()) text += ", its log is full";
  return text + ", log " + std::to_string(a.first) + ".." + std::to_string(a.last) + ", applied " +
         std::to_string(applied());
}

}  // namespace crane::replica::sim
