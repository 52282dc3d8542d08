// SPDX-License-Identifier: Apache-2.0
// A replica's processes, entries and server; model_actions.cc contains the actions of its machine.
#include "proxy/sim/replicas/model_replica.h"

#include <algorithm>
#include <limits>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kRestoreNs = 80 * kMs, kBeginNs = 20 * kMs;
constexpr std::uint32_t kFirstVersion = 2;
constexpr std::int64_t kPassNs = 20 * kMs;
constexpr std::int64_t kFetchNs = 150 * kMs, kFetchAgainNs = 1'000 * kMs;
constexpr std::int64_t kFetchTimeoutNs = 90'000 * kMs;  // as in FetchDeadline

ReplicaId id_of(unsigned id) { return ReplicaId{static_cast<std::uint8_t>(id)}; }

const char* text_of(node::ExitStatus how) {
  switch (how) {
    case node::ExitStatus::kServerDied:
      return "killed";
    case node::ExitStatus::kTooFarBehind:
      return "restarts";
    case node::ExitStatus::kDiverged:
      return "differs from the others";
    case node::ExitStatus::kNoRoom:
      return "has no room";
    case node::ExitStatus::kServerNotStarted:
      return "its server does not start";
    default:
      return "cannot begin";
  }
}

}  // namespace

// --- begin and end ------------------------------------------------------------------------------

void ModelReplica::start(const BeginRules& rules) {
  if (life_ != Life::kDown) return;
  life_ = Life::kUp;
  const Settings& s = world_.settings();
  if (world_.no_room()) {
    return end(s.mutant == Mutant::kLeaveFull ? node::ExitStatus::kLeftGroup
                                              : node::ExitStatus::kNoRoom);
  }
  Recovery::Rules r;
  r.requests.self = id_of(id_);
  r.requests.wanted = true;
  r.requests.limits.every_ns = s.every_ns;
  r.requests.limits.log_bytes = world_.log().ring_bytes() / 4;
  r.requests.limits.ring_bytes = s.on_disk ? 0 : world_.log().ring_bytes();
  r.ring_bytes = s.on_disk || s.hosts ? 0 : world_.log().ring_bytes();  // keeps_whole_log()
  r.on_disk = s.on_disk;
  r.skips_checkpoints = rules.skips;
  r.needs_dumps = true;
  r.requests.test_only_mutant = s.mutant;
  machine_.emplace(r);
  lead_watch_ = LeadWatch(s.mutant);
  members_.clear();
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    MemberView m;
    m.id = id_of(id);
    members_.push_back(m);
  }
  begin(rules);
}

// As StartingPoint and open_log() in proxy/host and proxy/node.
void ModelReplica::begin(const BeginRules& rules) {
  unusable_.clear();
  server_fails_ = false;
  const std::optional<Index> gone = std::exchange(gone_, std::nullopt);
  const bool trusts = world_.settings().mutant == Mutant::kTrustAll;
  const Acceptor& a = world_.log().acceptor(id_);
  bool another = a.first <= 1 && a.last > 0;  // or the log's beginning
  for (const StoredCheckpoint* one : world_.hosts().to_try(id_)) {
    const bool distrusted = one->distrusted() && !trusts;
    another = another || (!one->distrusted() && !one->damaged);
    const Try tries = try_checkpoint(rules, Index{one->at}, distrusted, gone);
    if (tries == Try::kNo || tries == Try::kLeftOut) continue;
    if (one->damaged) {
      unusable_.push_back(Index{one->at});
      continue;
    }
    world_.begins_at(*one, another && !gone);
    began_ = {one->at, one->by};
    server_fails_ = !one->starts;
    change_ = std::make_unique<ModelChange>(world_, *this, id_, one->version);
    server_.start(one->at, one->hash, world_.now_ns() + kRestoreNs);
    begin_clients(one->at, one->clients.get());
    if (!open_log(one->at, rules)) end(node::ExitStatus::kNoCheckpoint);
    return;
  }
  began_ = {};
  change_ = std::make_unique<ModelChange>(world_, *this, id_, kFirstVersion);
  server_.start(0, 0, world_.now_ns() + kBeginNs);
  begin_clients(0, nullptr);
  const bool may = otherwise(rules) != Otherwise::kNowhere;
  if (!may || !open_log(0, rules)) end(node::ExitStatus::kNoCheckpoint);
}

void ModelReplica::begin_clients(std::uint64_t behind, const proxy::sim::EchoServer* at) {
  if (world_.settings().clients == 0) return;
  proxy_ = std::make_unique<ModelProxy>(world_, proxy::sim::Process{id_, lives_}, behind, at);
}

void ModelReplica::end_clients() {
  if (!proxy_) return;
  proxy_->end();
  past_proxies_.push_back(std::move(proxy_));
}

bool ModelReplica::open_log(std::uint64_t behind, const BeginRules& rules) {
  ModelLog& log = world_.log();
  const bool gap = log.gap_behind(id_, behind) != 0;
  const bool votes = may_only_vote(rules, world_.replicas(), true) &&
                     world_.settings().mutant != Mutant::kNeverVoteOnly;
  if (gap && !votes) return false;
  log.join(id_, gap ? std::nullopt : std::optional(behind));
  if (gap) {
    server_.end();
    end_clients();
  }
  was_here_ = true;
  server_ran_ = false;
  begins_ = behind;
  entries_ = for_server_ = delivered_ = gap ? log.acceptor(id_).last : behind;
  limit_ = passed_ = behind;
  held_ = false;
  start_ = 0;
  led_ = View{};
  work_ = {};
  fetch_ = {};
  own_.clear();
  verified_ = behind;
  began_ns_ = world_.now_ns();
  committed_at_start_ = log.last_for_servers();
  if (gap) world_.began_without_server();
  world_.trace_line("replica %u begins %s %llu, its log is %llu..%llu", id_,
                    gap              ? "without a server; the log lacks the entries after"
                    : began_.at != 0 ? "at checkpoint"
                                     : "after entry",
                    static_cast<unsigned long long>(behind),
                    static_cast<unsigned long long>(log.acceptor(id_).first),
                    static_cast<unsigned long long>(log.acceptor(id_).last));
  Opened event;
  event.acceptor_only = gap;
  event.last = Index{log.acceptor(id_).last};
  event.begins = {{View{1}, Index{behind}}, behind * kEntryBytes};
  event.at_checkpoint = began_.at != 0;
  event.restores = rules.restores;
  feed(event);
  return true;
}

void ModelReplica::forget_life() {
  world_.log().leave(id_);
  server_.end();
  machine_.reset();
  if (change_) {
    change_->end();
    past_changes_.push_back(std::move(change_));
  }
  end_clients();
  ++lives_;
  events_.clear();
  report_.reset();
  work_ = {};
  fetch_ = {};
}

void ModelReplica::kill() {
  if (life_ == Life::kDown) return;
  end(node::ExitStatus::kServerDied);
}

void ModelReplica::lose_host() {
  life_ = Life::kDown;
  forget_life();
  world_.log().lose_power(id_);
}

void ModelReplica::leaves() {
  life_ = Life::kDown;
  forget_life();
}

// A node on its own host begins again unasked if a checkpoint helps (proxy/node/main.cc).
void ModelReplica::end(node::ExitStatus how) {
  if (life_ == Life::kDown) return;
  world_.trace_line("replica %u: its node ends (%s)", id_, text_of(how));
  const bool looks =
      life_ != Life::kFetches && world_.hosts().several() &&
      (how == node::ExitStatus::kTooFarBehind || how == node::ExitStatus::kNoCheckpoint);
  forget_life();
  if (looks) {
    life_ = Life::kFetches;
    fetch_.until_ns = world_.now_ns() + kFetchTimeoutNs;
    if (how == node::ExitStatus::kTooFarBehind) fetch_.ends_ns = world_.now_ns();
    return world_.node_restarts();
  }
  life_ = Life::kDown;
  world_.node_ended(id_, how);
}

void ModelReplica::begin_again() {
  life_ = Life::kDown;
  fetch_ = {};
  start(world_.rules_on_host(id_));
}

// As fetch_after(): looks for a checkpoint of another host that is newer than those of this one.
void ModelReplica::look_for_checkpoint() {
  const std::int64_t now = world_.now_ns();
  if (fetch_.ends_ns != 0) {
    if (now < fetch_.ends_ns) return;
    if (fetch_.what) world_.fetched(id_, *fetch_.what);
    return begin_again();
  }
  if (now >= fetch_.until_ns) return end(node::ExitStatus::kNoCheckpoint);
  std::uint64_t newest = 0;
  for (const StoredCheckpoint& c : world_.hosts().seen_by(id_)) {
    if (!c.damaged) newest = std::max(newest, c.at);
  }
  begin_fetch(newest);
}

void ModelReplica::begin_fetch(std::uint64_t behind) {
  const std::int64_t now = world_.now_ns();
  if (fetch_.ends_ns != 0 || now < fetch_.again_ns) return;
  fetch_.again_ns = now + kFetchAgainNs;
  fetch_.what = world_.fetch_for(id_, behind);
  if (fetch_.what) fetch_.ends_ns = now + kFetchNs;
}

void ModelReplica::finish_fetch() {
  if (fetch_.ends_ns == 0 || world_.now_ns() < fetch_.ends_ns) return;
  world_.fetched(id_, *std::exchange(fetch_.what, std::nullopt));
  fetch_.ends_ns = 0;
}

void ModelReplica::set_stopped(bool stopped) {
  if (life_ != (stopped ? Life::kUp : Life::kStopped)) return;
  life_ = stopped ? Life::kStopped : Life::kUp;
  world_.log().stop(id_, stopped);
}

void ModelReplica::packing_fails() {
  if (work_.kind != Work::Kind::kPack) return;
  work_ = {};
  feed(Packed{Index{packed_at_}, packed_at_ * kEntryBytes, true, 0, "its process was killed"});
}

// Checkpoints that it took since it was last equal to the others are not trusted (START-3).
void ModelReplica::differed(std::uint64_t at) {
  world_.hosts().differed(id_, began_, at, verified_);
  end(node::ExitStatus::kDiverged);
}

// As StartingPoint::server_failed().
void ModelReplica::server_failed() {
  world_.hosts().mark(id_, began_, began_.at);
  end(node::ExitStatus::kServerNotStarted);
}

// --- one moment ---------------------------------------------------------------------------------

void ModelReplica::step() {
  past_changes_.clear();
  past_proxies_.clear();
  if (life_ == Life::kFetches) return look_for_checkpoint();
  if (!up()) return;
  step_role();
  if (!up()) return;
  take_entries();
  if (!up()) return;
  run_server();
  if (!up()) return;
  finish_work();
  if (!up()) return;
  finish_fetch();
  rely_on_checkpoints();
  look_at_members();
  report_lag();
  if (machine_->catches_up()) feed(ServerBehind{behind_ns()});
  if (!up()) return;
  feed(Tick{});
  if (up()) hand_over_if_behind();
  if (up()) step_clients();
}

void ModelReplica::step_role() {
  const ModelLog& log = world_.log();
  const bool leads = log.leader() == id_ && led_ == log.view();
  if (!leads && proxy_) proxy_->follow();
  if (leads || !up() || log.leader() != id_) return;
  led_ = log.view();
  start_ = 0;
  lead_watch_ = LeadWatch(world_.settings().mutant);
}

void ModelReplica::take_entries() {
  ModelLog& log = world_.log();
  const std::uint64_t upto = std::min(log.committed(), log.acceptor(id_).last);
  for (; entries_ < upto && up(); ++entries_) {
    const LogEntry& entry = log.entry(entries_ + 1);
    if (proxy_) proxy_->committed(entries_ + 1);
    if (!up()) return;
    if (entry.kind != LogEntry::Kind::kPassed) {
      for_server_ = entries_ + 1;
    } else {
      limit_ = std::max<std::uint64_t>(limit_, entry.number);
    }
  }
  while (up() && !held_ && !change_->holds_log() && delivered_ < entries_) give();
  server_.arrived_for_it(for_server_);
  const bool may_start = log.leader() == id_ && start_ == 0 && up();
  if (may_start) start_ = log.propose(id_, {LogEntry::Kind::kStart, {}, 0});
}

// Passes the next entry to the server.
void ModelReplica::give() {
  const LogEntry& entry = world_.log().entry(++delivered_);
  if (entry.kind == LogEntry::Kind::kRestart && has_server()) {
    change_->committed(delivered_, entry.number);
  }
  if (entry.kind != LogEntry::Kind::kCheckpoint) return;
  feed(CheckpointCommitted{Index{delivered_}, id_of(entry.number)});
}

void ModelReplica::run_server() {
  if (server_.take_arrivals()) {
    if (server_fails_) return server_failed();
    server_ran_ = true;
    world_.server_runs(id_);
    feed(ServerRuns{began_.at != 0 ? kRestoreNs : 0});
    if (up()) change_->server_started();
  }
  if (up() && has_server() && change_->under_way() && !machine_->idle()) feed(ServerEnds{});
  if (up() && has_server()) change_->tick();
  if (!up() || !server_.runs()) return;
  const std::uint64_t before = server_.applied();
  const unsigned lives = lives_;
  const bool free = !world_.settings().limited || (world_.log().leader() == id_ && start_ != 0);
  server_.run(delivered_, free ? std::numeric_limits<std::uint64_t>::max() : limit_);
  for (std::uint64_t at = before + 1; proxy_ && at <= applied(); ++at) proxy_->ran(at);
  change_->admitted(before, applied());
  if (lives_ != lives) return;
  if (server_.crashed()) return world_.server_exited(id_);
  for (std::uint64_t at = before + 1; serves() && at <= applied(); ++at) {
    if (at >= start_) world_.answered(at);
  }
  if (world_.settings().limited) pass();
}

// The leader lets followers' servers run as far as its own (dmt/stall.h).
void ModelReplica::pass() {
  if (world_.log().leader() != id_ || start_ == 0 || ran() <= passed_ || ran() <= limit_) return;
  if (world_.now_ns() < pass_ns_) return;
  pass_ns_ = world_.now_ns() + kPassNs;
  const auto number = static_cast<std::uint32_t>(ran());
  if (world_.log().propose(id_, {LogEntry::Kind::kPassed, {}, number}) != 0) passed_ = ran();
}

void ModelReplica::finish_work() {
  if (work_.kind == Work::Kind::kIdle || world_.now_ns() < work_.ends_ns) return;
  const Work::Kind kind = std::exchange(work_, {}).kind;
  if (kind == Work::Kind::kPrepare) {
    held_ = true;
    return feed(Prepared{Index{delivered_}});
  }
  if (kind == Work::Kind::kDump) {
    packed_at_ = value(machine_->checkpoint().under_way);
    packed_hash_ = hash();
    packed_version_ = change_->version();
    note_clients();
    return feed(Dumped{"", "", true});
  }
  const bool full = world_.disk_full();
  if (kind == Work::Kind::kPackFiles) {
    if (!full) publish(false);
    return change_->packed(packed_at_, full ? "the disk is full" : "");
  }
  if (!full) publish(true);
  feed(
      Packed{Index{packed_at_}, packed_at_ * kEntryBytes, true, 0, full ? "the disk is full" : ""});
}

void ModelReplica::note_clients() {
  packed_clients_ = nullptr;
  if (proxy_) packed_clients_ = std::make_shared<const proxy::sim::EchoServer>(proxy_->server());
}

void ModelReplica::publish(bool dumped) {
  own_.push_back(packed_at_);
  world_.published({.at = packed_at_,
                    .by = id_,
                    .hash = packed_hash_,
                    .version = packed_version_,
                    .clients = packed_clients_},
                   relied_, dumped);
}

// As Recovery::rely_on_checkpoints() in proxy/host: the newest of its checkpoints that was compared
// (PACK-2).
void ModelReplica::rely_on_checkpoints() {
  if (!world_.settings().on_disk || work_.kind == Work::Kind::kPack) return;
  for (const std::uint64_t at : own_) {
    if (at <= verified_) relied_ = std::max(relied_, at);
  }
  std::erase_if(own_, [this](std::uint64_t at) { return at <= verified_; });
  if (relied_ != 0) world_.log().checkpointed(id_, relied_);
}

// As ProgressReporter::new_lag().
void ModelReplica::report_lag() {
  constexpr std::int64_t kLateNs = 20 * kMs;
  if (machine_->acceptor_only()) return;
  const std::int64_t late = behind_ns() < kLateNs ? 0 : behind_ns();
  const bool recovers = machine_->catches_up();
  world_.log().report_lag(id_, recovers ? std::max(late, kRecoversLagNs) : late, applied());
}

// As Node::watch_lead().
void ModelReplica::hand_over_if_behind() {
  ModelLog& log = world_.log();
  const bool no_server = machine_->acceptor_only();
  LeadWatch::Inputs seen{log.leader() == id_, Index{applied()}, 0, 0, !no_server};
  if (seen.leads && !no_server) {
    seen.behind_ns = behind_ns();
    seen.clock = ran();
  }
  std::vector<ReplicaId> voters;
  for (unsigned id = 0; id < world_.replicas(); ++id) {
    const Acceptor& a = log.acceptor(id);
    const consensus::MemberStatus m{
        .id = id_of(id),
        .role = a.votes ? consensus::MemberRole::kVoter : consensus::MemberRole::kReturning,
        .connected = a.connected(),
        .streaming = a.streaming};
    if (LeadWatch::may_take_lead(m, id_of(id_))) voters.push_back(m.id);
  }
  const LeadWatch::Next actions = lead_watch_.step(seen, voters, world_.now_ns());
  if (actions.asks) request_places(voters);
  if (actions.successor && log.transfer(value(*actions.successor))) {
    world_.trace_line("replica %u hands leadership to replica %u", id_, value(*actions.successor));
    lead_watch_.handed_over(world_.now_ns());
  }
}

void ModelReplica::request_places(std::span<const ReplicaId> voters) {
  for (const ReplicaId to : voters) {
    const ModelReplica& other = world_.replica(value(to));
    if (!other.up() || !other.has_server()) continue;
    ServerPlaceMessage answer;
    answer.answers = 1;
    answer.applied = other.applied();
    answer.clock = other.ran();
    answer.waits = other.waits_at_limit() ? 1 : 0;
    lead_watch_.on_report(to, answer, world_.now_ns());
  }
}

bool ModelReplica::serves() const {
  return world_.log().leader() == id_ && up() && server_.runs() && start_ != 0 &&
         applied() >= start_ && change_->admits_clients();
}

// A leader serves from its next moment on; one that was deposed follows.
void ModelReplica::step_clients() {
  if (!proxy_ || world_.log().leader() != id_ || led_ != world_.log().view()) return;
  const bool early = world_.settings().mutant == Mutant::kServeEarly;
  const bool serves_now = serves() || (early && start_ != 0);
  if (serves_now || proxy_->leading()) proxy_->serve(serves_now);
}

bool ModelReplica::whole() const {
  const Acceptor& a = world_.log().acceptor(id_);
  return up() && !change_->under_way() && a.votes && !a.amnesiac && server_.runs() &&
         !machine_->catches_up() &&
         applied() + world_.settings().runs_at_once >= world_.log().committed();
}

control::Readiness ModelReplica::readiness() const {
  const bool reports_ready = world_.settings().mutant == Mutant::kReportReady;
  control::Readiness r;
  r.runs = server_.runs();
  r.acceptor_only = machine_->acceptor_only();
  r.starts = !r.acceptor_only && !r.runs && !reports_ready;
  r.takes_clients = serves() || (reports_ready && world_.log().leader() == id_);
  r.recovers = !reports_ready && (machine_->meter().recovering() || machine_->catches_up());
  r.needs_checkpoint = world_.log().acceptor(id_).lacks;
  r.paced = full_ns_ != 0 && world_.now_ns() - full_ns_ > control::kNearMs * kMs;
  r.held = world_.log().leader() != id_ && waits_at_limit();
  r.no_room = world_.no_room();
  r.lag_ms = reports_ready ? 0 : behind_ns() / kMs;
  return r;
}

}  // namespace crane::replica::sim
