// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_replica.h"

#include <algorithm>
#include <limits>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kRestoreNs = 80 * kMs, kBeginNs = 20 * kMs;
constexpr std::int64_t kPrepareNs = 30 * kMs, kDumpNs = 40 * kMs, kPackNs = 200 * kMs;
constexpr unsigned kRunsAtOnce = 4;  // entries that a server runs per moment

ReplicaId id_of(unsigned id) { return ReplicaId{static_cast<std::uint8_t>(id)}; }

}  // namespace

// --- begin and end ------------------------------------------------------------------------------

void ModelReplica::start(const BeginRules& rules) {
  if (life_ != Life::kDown) return;
  life_ = Life::kUp;
  Recovery::Rules r;
  r.requests.self = id_of(id_);
  r.requests.wanted = true;
  r.requests.limits.every_ns = world_.settings().every_ns;
  r.requests.limits.log_bytes = world_.log().ring_bytes() / 4;
  r.requests.limits.ring_bytes = r.ring_bytes = world_.log().ring_bytes();
  r.skips_checkpoints = rules.skips;
  r.needs_dumps = true;
  r.requests.test_only_mutant = world_.settings().mutant;
  machine_.emplace(r);
  lead_watch_ = LeadWatch(world_.settings().mutant);
  members_.clear();
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    MemberSeen m;
    m.id = id_of(id);
    m.role = consensus::MemberRole::kVoter;
    members_.push_back(m);
  }
  begin(rules);
}

// As StartingPoint and open_log() in proxy/host and proxy/node.
void ModelReplica::begin(const BeginRules& rules) {
  unusable_.clear();
  const std::optional<Index> gone = std::exchange(gone_, std::nullopt);
  auto& all = world_.checkpoints();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (try_checkpoint(rules, Index{one->at}, false, gone) != Try::kYes) continue;
    if (one->damaged) {
      unusable_.push_back(Index{one->at});
      continue;
    }
    if (one->hash != world_.hash_at(one->at))
      world_.violate("HONEST: a checkpoint holds another state");
    hash_ = one->hash;
    if (!open_log(one->at, true, rules)) end(End::kCannotBegin);
    return;
  }
  hash_ = 0;
  const bool may = otherwise(rules) != Otherwise::kNowhere;
  if (!may || !open_log(0, false, rules)) end(End::kCannotBegin);
}

bool ModelReplica::open_log(std::uint64_t behind, bool at_checkpoint, const BeginRules& rules) {
  ModelLog& log = world_.log();
  const bool gap = log.gap_behind(id_, behind) != 0;
  const bool votes = may_only_vote(rules, world_.replicas(), true) &&
                     world_.settings().mutant != Mutant::kNeverVoteOnly;
  if (gap && !votes) return false;
  log.join(id_, gap ? std::nullopt : std::optional(behind));
  begins_ = applied_ = behind;
  taken_ = given_ = gap ? log.acceptor(id_).last : behind;
  held_.reset();
  start_ = 0;
  led_ = View{};
  work_ = {};
  server_ = gap ? Server::kGone : Server::kStarts;
  server_at_ns_ = world_.now_ns() + (at_checkpoint ? kRestoreNs : kBeginNs);
  applied_ns_ = began_ns_ = world_.now_ns();
  missed_ = log.committed();
  if (gap) world_.began_without_server();
  Opened event;
  event.acceptor_only = gap;
  event.last = Index{log.acceptor(id_).last};
  event.begins = {{View{1}, Index{behind}}, behind * kEntryBytes};
  event.at_checkpoint = at_checkpoint;
  event.restores = rules.restores;
  world_.tell("replica %u begins %s %llu, its log is %llu..%llu", id_,
              gap             ? "without a server; the log lacks what is behind"
              : at_checkpoint ? "at checkpoint"
                              : "behind entry",
              static_cast<unsigned long long>(behind),
              static_cast<unsigned long long>(log.acceptor(id_).first),
              static_cast<unsigned long long>(log.acceptor(id_).last));
  feed(event);
  return true;
}

void ModelReplica::end(End how) {
  if (life_ == Life::kDown) return;
  world_.tell("replica %u: its node ends (%s)", id_,
              how == End::kKilled     ? "killed"
              : how == End::kRestarts ? "restarts"
                                      : "cannot begin");
  life_ = Life::kDown;
  world_.log().leave(id_);
  server_ = Server::kGone;
  machine_.reset();
  events_.clear();
  report_.reset();
  work_ = {};
  world_.node_ended(id_, how);
}

void ModelReplica::set_stopped(bool stopped) {
  if (life_ == Life::kDown) return;
  life_ = stopped ? Life::kStopped : Life::kUp;
  world_.log().stop(id_, stopped);
}

void ModelReplica::packing_fails() {
  if (work_.kind != Work::Kind::kPack) return;
  work_ = {};
  feed(Packed{Index{packed_at_}, packed_at_ * kEntryBytes, true, 0, "its process was killed"});
}

// --- one moment ---------------------------------------------------------------------------------

void ModelReplica::step() {
  if (!up()) return;
  step_role();
  take_entries();
  if (!up()) return;
  run_server();
  finish_work();
  if (!up()) return;
  look_at_members();
  if (machine_->catches_up()) feed(ServerBehind{behind_ns()});
  if (!up()) return;
  feed(Tick{});
  if (up()) hand_over_if_behind();
}

void ModelReplica::step_role() {
  const ModelLog& log = world_.log();
  if (log.leader() != id_ || led_ == log.view()) return;
  led_ = log.view();
  start_ = 0;
  lead_watch_ = LeadWatch(world_.settings().mutant);
}

void ModelReplica::take_entries() {
  ModelLog& log = world_.log();
  const std::uint64_t upto = std::min(log.committed(), log.acceptor(id_).last);
  while (up() && taken_ < upto) {
    const LogEntry& entry = log.entry(++taken_);
    if (!held_) given_ = taken_;
    if (entry.kind != LogEntry::Kind::kCheckpoint) continue;
    feed(CheckpointCommitted{Index{taken_}, id_of(entry.number)});
  }
  if (!held_ && up()) given_ = taken_;
  const bool may_start = log.leader() == id_ && start_ == 0 && up();
  if (may_start) start_ = log.propose(id_, {LogEntry::Kind::kStart, {}, 0});
}

void ModelReplica::run_server() {
  const std::int64_t now = world_.now_ns();
  if (server_ == Server::kStarts && now >= server_at_ns_) {
    server_ = Server::kRuns;
    world_.server_runs(id_);
    feed(ServerRuns{begins_ != 0 ? kRestoreNs : 0});
  }
  if (!up() || server_ != Server::kRuns || now < server_at_ns_) return;
  for (unsigned n = 0; n < kRunsAtOnce && applied_ < given_; ++n) {
    if (world_.slow(id_) && n != 0) break;
    ++applied_;
    hash_ = world_.hash_at(applied_);
    if (serves()) world_.answered(applied_);
  }
  if (applied_ >= given_) applied_ns_ = now;
}

void ModelReplica::finish_work() {
  if (work_.kind == Work::Kind::kIdle || world_.now_ns() < work_.ends_ns) return;
  const Work::Kind kind = std::exchange(work_, {}).kind;
  if (kind == Work::Kind::kPrepare) {
    held_ = given_;
    return feed(Prepared{Index{given_}});
  }
  if (kind == Work::Kind::kDump) {
    packed_at_ = value(machine_->checkpoint().under_way);
    packed_hash_ = hash_;
    return feed(Dumped{"", "", true});
  }
  const bool full = world_.disk_full();
  if (!full) world_.published({packed_at_, id_, packed_hash_, false});
  feed(
      Packed{Index{packed_at_}, packed_at_ * kEntryBytes, true, 0, full ? "the disk is full" : ""});
}

std::int64_t ModelReplica::behind_ns() const {
  return applied_ >= given_ ? 0 : world_.now_ns() - applied_ns_;
}

// As Node::watch_lead().
void ModelReplica::hand_over_if_behind() {
  ModelLog& log = world_.log();
  const bool no_server = machine_->acceptor_only();
  LeadWatch::Seen seen{log.leader() == id_, Index{applied_}, 0, 0, !no_server};
  if (seen.leads && !no_server) seen.behind_ns = behind_ns();
  const Mutant mutant = world_.settings().mutant;
  std::vector<ReplicaId> voters;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const Acceptor& a = log.acceptor(id);
    const consensus::MemberStatus m{.id = id_of(id),
                                    .role = consensus::MemberRole::kVoter,
                                    .connected = a.process,
                                    .streaming = a.streaming || mutant == Mutant::kLeadLacking};
    if (LeadWatch::may_take_lead(m, id_of(id_))) voters.push_back(m.id);
  }
  const LeadWatch::Next actions = lead_watch_.step(seen, voters, world_.now_ns());
  if (actions.asks) {
    for (const ReplicaId to : voters) {
      const ModelReplica& other = world_.replica(value(to));
      if (!other.up() || !other.has_server()) continue;
      StandingMessage answer;
      answer.answers = 1;
      answer.applied = other.applied();
      lead_watch_.heard(to, answer, world_.now_ns());
    }
  }
  if (actions.successor && log.transfer(value(*actions.successor))) {
    world_.tell("replica %u hands the lead to replica %u", id_, value(*actions.successor));
    lead_watch_.handed_over(world_.now_ns());
  }
}

// --- the machine --------------------------------------------------------------------------------

void ModelReplica::hear(const Event& event) {
  if (up()) feed(event);
}

bool ModelReplica::serves() const {
  return world_.log().leader() == id_ && up() && server_ == Server::kRuns && start_ != 0 &&
         applied_ >= start_;
}

bool ModelReplica::whole() const {
  return up() && server_ == Server::kRuns && !machine_->catches_up() &&
         applied_ + kRunsAtOnce >= world_.log().committed();
}

control::Readiness ModelReplica::readiness() const {
  control::Readiness r;
  r.runs = server_ == Server::kRuns;
  r.acceptor_only = machine_->acceptor_only();
  r.starts = !r.acceptor_only && !r.runs;
  r.takes_clients = serves();
  r.recovers = machine_->meter().recovering() || machine_->catches_up();
  r.needs_checkpoint = world_.log().acceptor(id_).lacks;
  r.paced = full_ns_ != 0 && world_.now_ns() - full_ns_ > control::kNearMs * kMs;
  r.lag_ms = behind_ns() / kMs;
  return r;
}

void ModelReplica::look_at_members() {
  full_ns_ = !serves() || !log_is_full() ? 0 : full_ns_ != 0 ? full_ns_ : world_.now_ns();
  const ModelLog& log = world_.log();
  report_.emplace();
  report_->acceptor_only = machine_->acceptor_only();
  report_->waits_behind = machine_->held();
  report_->lacks = log.acceptor(id_).lacks;
  report_->recovers = machine_->catches_up();
  report_->lag_ms = behind_ns() / kMs;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const Acceptor& a = log.acceptor(id);
    MemberSeen& m = members_[id];
    const bool leads = log.leader() == id_;
    m.connected = a.process;
    m.streaming = leads && a.streaming;
    m.needs_checkpoint = leads && a.lacks;
    m.report = a.process ? world_.replica(id).report() : std::nullopt;
    m.lag_ns = leads && m.report ? m.report->lag_ms * kMs : 0;
  }
}

Facts ModelReplica::facts() {
  const ModelLog& log = world_.log();
  Facts f;
  f.now_ns = world_.now_ns();
  f.leads = log.leader() == id_;
  f.role = f.leads ? consensus::Role::kLeader : consensus::Role::kFollower;
  f.view = log.view();
  f.leader = id_of(log.leader());
  f.started = f.leads && start_ != 0;
  f.admitted = f.serves = serves();
  f.members = members_;
  f.committed = Index{std::min(log.committed(), std::max(taken_, log.acceptor(id_).last))};
  f.needs_checkpoint = log.acceptor(id_).lacks;
  f.taken = f.for_server = Index{taken_};
  f.log_end = taken_ * kEntryBytes;
  f.inputs = taken_;
  f.trusted = Index{std::numeric_limits<std::uint64_t>::max()};
  f.applied = Index{applied_};
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
          !std::holds_alternative<Say>(action) && !std::holds_alternative<Look>(action);
      if (counts && !world_.passes_point(id_)) break;
      std::visit([this](const auto& a) { on(a); }, action);
      if (!machine_) break;
    }
  }
  carries_out_ = false;
}

void ModelReplica::on(const Tell& action) {
  const unsigned to = value(action.to);
  if (to >= world_.replicas() || to == id_) return;
  const ReplicaId from{static_cast<std::uint8_t>(id_)};
  ModelReplica& other = world_.replica(to);
  if (const auto* m = std::get_if<CommittedMessage>(&action.message)) {
    other.hear(HeardCommitted{from, *m});
  } else if (const auto* n = std::get_if<CheckpointNote>(&action.message)) {
    other.hear(HeardCheckpoint{*n});
  } else {
    other.hear(HeardRefusal{std::get<RefusalMessage>(action.message)});
  }
}

void ModelReplica::on(const ProposeCheckpoint& action) {
  const std::uint64_t at =
      world_.log().propose(id_, {LogEntry::Kind::kCheckpoint, {}, value(action.taker)});
  world_.tell("replica %u asks replica %u for a checkpoint at entry %llu", id_, value(action.taker),
              static_cast<unsigned long long>(at));
  feed(at != 0 ? Proposed{Index{at}, ""} : Proposed{Index{}, "busy"});
}

void ModelReplica::on(const Restart& action) {
  if (!spares()) world_.violate("SPARE: a restart takes the majority away");
  world_.tell("replica %u: %s", id_, action.why.c_str());
  end(End::kRestarts);
}

void ModelReplica::on(const FindCheckpoints& action) {
  Found found;
  found.purpose = action.purpose;
  const auto& all = world_.checkpoints();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    found.checkpoints.push_back(
        {{{View{1}, Index{one->at}}, one->at * kEntryBytes}, one->by == id_, false});
  }
  found.unusable = unusable_;
  feed(found);
}

void ModelReplica::on(const KeepLog& action) {
  const auto from = action.from ? std::optional(value(action.from->at.index)) : std::nullopt;
  world_.log().keep(id_, from);
  if (!from && !machine_->acceptor_only()) world_.log_given_up();
}

void ModelReplica::on(const ReportLag& action) {
  world_.log().report_lag(id_, action.ns, value(action.ran));
}

void ModelReplica::on(const ReportCaughtUp&) {
  // Where none leads for a while, as all began together, it relies on its own log.
  if (began_ns_ > world_.unled_ns() && applied_ < missed_)
    world_.violate("CAUGHT: a replica lacks what was committed when it began");
  world_.log().report_lag(id_, 0, applied_);
}

// As far as it could see a moment ago, the group serves without this replica if it did with it;
// where no other replica comes it may go after a while.
bool ModelReplica::spares() const {
  const ModelLog& log = world_.log();
  const unsigned leader = log.leader();
  if (leader == kNone || leader == id_ || !world_.replica(leader).serves()) return true;
  unsigned others = 0;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const MemberSeen& m = members_[id];
    others += id != id_ && m.connected && m.report && !m.report->lacks ? 1 : 0;
  }
  const bool needed = log.acceptor(id_).streaming && (others + 1) * 2 > world_.replicas();
  return !needed || others * 2 > world_.replicas() || world_.now_ns() - began_ns_ >= kSpareNs;
}

void ModelReplica::on(const Prepare&) {
  if (server_ != Server::kRuns) return feed(Dumped{"no server runs", "", false});
  work_ = {Work::Kind::kPrepare, world_.now_ns() + kPrepareNs};
}

void ModelReplica::on(const Look& action) {
  const bool admitted = Index{applied_} >= action.at;
  const bool computes = world_.slow(id_);
  feed(Looked{admitted, computes ? "a thread computes" : ""});
}

void ModelReplica::on(const Slide&) {
  if (given_ >= taken_) return feed(Slid{});
  ++given_;
  held_ = given_;
  feed(Slid{Index{given_}});
}

void ModelReplica::on(const Dump&) { work_ = {Work::Kind::kDump, world_.now_ns() + kDumpNs}; }

void ModelReplica::on(const Pack&) {
  if (world_.disk_full()) {
    return feed(Packed{Index{}, 0, true, 0, "the disk is full"});
  }
  work_ = {Work::Kind::kPack, world_.now_ns() + kPackNs};
}

std::string ModelReplica::describe() const {
  const Acceptor& a = world_.log().acceptor(id_);
  std::string text = "r" + std::to_string(id_) + ": ";
  text += life_ == Life::kDown ? "down" : life_ == Life::kStopped ? "stopped" : "up";
  if (machine_ && machine_->acceptor_only()) text += ", votes only";
  if (machine_ && machine_->catches_up()) text += ", catches up";
  if (a.lacks) text += ", lacks entries";
  if (log_is_full()) text += ", its log is full";
  return text + ", log " + std::to_string(a.first) + ".." + std::to_string(a.last) + ", applied " +
         std::to_string(applied_);
}

}  // namespace crane::replica::sim
