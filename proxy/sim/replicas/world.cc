// SPDX-License-Identifier: Apache-2.0
// Time, faults, and events of a world; properties.cc contains the properties.
#include "proxy/sim/replicas/world.h"

#include <algorithm>
#include <cstdarg>

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kMomentNs = 10 * kMs, kCalmMomentNs = 20 * kMs;
constexpr std::int64_t kEndNs = 400'000 * kMs;
// A fault that must cost clients nothing has no other one this near.
constexpr std::uint64_t kAlonePoints = 100;

// Clients wait while the leader's server has this much to run.
constexpr std::uint64_t kPacedMoments = 10;

std::uint64_t mix(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

}  // namespace

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "kill";
    case FaultKind::kKillAll:
      return "kill all";
    case FaultKind::kStop:
      return "stop";
    case FaultKind::kPackFails:
      return "packing fails";
    case FaultKind::kDamage:
      return "newest checkpoint damaged";
    case FaultKind::kFullDisk:
      return "disk full";
    case FaultKind::kSlow:
      return "slow server";
    case FaultKind::kStopServer:
      return "server stopped";
    case FaultKind::kTransfer:
      return "transfer";
    case FaultKind::kRestart:
      return "restart of the server";
    case FaultKind::kUpgrade:
      return "upgrade";
    case FaultKind::kNoSupervisor:
      return "supervisor stopped";
    case FaultKind::kHostLost:
      return "host lost";
    case FaultKind::kDiffers:
      return "server differs";
    case FaultKind::kFlaw:
      return "newest checkpoint lacks something";
    case FaultKind::kRefuses:
      return "CRIU refuses";
    case FaultKind::kNoRestore:
      return "newest checkpoint starts no server";
  }
  return "";
}

ReplicaWorld::ReplicaWorld(const Settings& settings, std::vector<Fault> faults)
    : settings_(settings),
      faults_(std::move(faults)),
      log_({.replicas = settings.replicas,
            .ring_entries = settings.ring_entries,
            .keeps = !settings.hosts && !settings.on_disk,
            .on_disk = settings.on_disk}),
      hosts_(settings.replicas, settings.hosts),
      hindered_(!settings.paced || settings.compute_each != 0 || settings.runs_at_once == 1),
      has_run_(settings.replicas),
      near_(settings.replicas),
      left_(settings.replicas) {
  if (settings.clients != 0) {
    clients_ = std::make_unique<ModelClients>(*this, settings.clients, settings.clients_seed);
  }
  for (unsigned id = 0; id < settings.replicas; ++id) {
    replicas_.push_back(std::make_unique<ModelReplica>(*this, id));
    if (settings.hosts) supervisors_.push_back(std::make_unique<ModelSupervisor>(*this, id));
  }
  if (!settings.hosts) supervisors_.push_back(std::make_unique<ModelSupervisor>(*this));
}

Result ReplicaWorld::run() {
  for (auto& s : supervisors_) s->begin();
  while (result_.violation.empty() && !result_.given_up && !result_.ended && now_ns_ < kEndNs) {
    step();
    if (calm_ns_ != 0 && all_restored() && answered_ns_ > calm_ns_ && clients_done()) {
      result_.whole_ns = now_ns_ - calm_ns_;
      break;
    }
  }
  if (clients_) {
    result_.received = clients_->received();
    result_.lost = clients_->lost();
  }
  result_.points = points_;
  result_.views = value(log_.view()) / 256;
  return result_;
}

void ReplicaWorld::step() {
  now_ns_ += calm_ns_ != 0 ? kCalmMomentNs : kMomentNs;
  pass_point();
  for (const Proceeds& p : proceeds_) {
    if (p.at_ns > now_ns_) continue;
    replicas_[p.id]->proceed();
    proceeded_ns_ = now_ns_;
  }
  std::erase_if(proceeds_, [this](const Proceeds& p) { return p.at_ns <= now_ns_; });
  for (unsigned id = 0; id < replicas(); ++id) {
    if (hosts_.returns(id, now_ns_)) supervisor_of(id).begin();
  }
  log_.set_full(no_room());
  log_.step(now_ns_);
  check_leader();
  for (auto& s : supervisors_) s->step();
  client_sends();
  for (auto& replica : replicas_) replica->step();
  if (clients_) clients_->step();
  check();
}

// A group in which not all have run yet ends when it loses a node, so faults come later.
bool ReplicaWorld::serving() const {
  if (!settings_.hosts) return supervisors_.front()->serving();
  return std::all_of(has_run_.begin(), has_run_.end(), [](bool one) { return one; });
}

void ReplicaWorld::pass_point() {
  if (!serving()) return;
  ++points_;
  while (next_fault_ < faults_.size() && faults_[next_fault_].point <= points_) {
    inject(faults_[next_fault_++]);
  }
}

bool ReplicaWorld::passes_point(unsigned id) {
  const unsigned lives = replicas_[id]->lives();
  pass_point();
  return replicas_[id]->lives() == lives;
}

// --- faults -------------------------------------------------------------------------------------

// Notes what the fault must not cost clients.
void ReplicaWorld::note_cost(const Fault& fault) {
  const ModelReplica& r = *replicas_[fault.replica];
  const bool alone =
      next_fault_ >= faults_.size() || faults_[next_fault_].point > fault.point + kAlonePoints;
  const bool changes = std::any_of(replicas_.begin(), replicas_.end(),
                                   [](const auto& one) { return one->changes(); });
  const bool calm = !changes && proceeds_.empty() && now_ns_ >= slow_until_ns_ &&
                    now_ns_ >= stopped_until_ns_ && !differed_;
  lost_ns_ = stalled_since_ns_ = 0;
  if (!alone || !calm || !r.up()) return;
  if (!settings_.paced) return;  // the next leader must run what this one did not
  const bool may_lose = status().may_lose.value_or(0) > 0;
  if (fault.kind == FaultKind::kKill || fault.kind == FaultKind::kHostLost) {
    lost_ns_ = may_lose ? now_ns_ : 0;
  }
  // Under the stall rule no other server can show that it would be faster than a slow leader's.
  const bool stands = fault.kind == FaultKind::kStopServer ||
                      (fault.kind == FaultKind::kSlow && !settings_.limited);
  if (stands && may_lose && log_.leader() == fault.replica && all_restored())
    stalled_since_ns_ = now_ns_;
}

void ReplicaWorld::inject(const Fault& fault) {
  ModelReplica& r = *replicas_[fault.replica];
  const std::int64_t until_ns = now_ns_ + fault.lasts_ns;
  hindered_ = hindered_ || fault.kind != FaultKind::kNoSupervisor;
  note_cost(fault);
  refused_alone_ = fault.kind == FaultKind::kRefuses && all_restored();
  trace_line("FAULT %s, replica %u", name(fault.kind), fault.replica);
  switch (fault.kind) {
    case FaultKind::kKill:
      return r.kill();
    case FaultKind::kKillAll:
      for (auto& one : replicas_) one->kill();
      return;
    case FaultKind::kStop:
      if (!r.up()) return;
      proceeds_.push_back({until_ns, fault.replica});
      return r.stop();
    case FaultKind::kPackFails:
      return r.packing_fails();
    case FaultKind::kDamage:
    case FaultKind::kFlaw:
    case FaultKind::kNoRestore:
      return spoil_checkpoint(fault);
    case FaultKind::kFullDisk:
      disk_full_until_ns_ = until_ns;
      return;
    case FaultKind::kSlow:
      slow_ = fault.replica;
      slow_until_ns_ = until_ns;
      return;
    case FaultKind::kStopServer:
      stopped_replica_ = fault.replica;
      stopped_until_ns_ = until_ns;
      return;
    case FaultKind::kTransfer:
      (void)log_.transfer(fault.replica);
      return;
    case FaultKind::kRestart:
    case FaultKind::kUpgrade:
      if (log_.leader() == kNone) return;
      return replicas_[log_.leader()]->ask_change(
          fault.kind == FaultKind::kUpgrade ? next_version_++ : 0);
    case FaultKind::kNoSupervisor:
      unsupervised_until_ns_ = until_ns;
      return supervisor_of(fault.replica).stop_until(until_ns);
    case FaultKind::kHostLost:
      return lose_host(fault.replica, until_ns);
    case FaultKind::kDiffers:
      if (!r.server_runs()) return;
      differed_ = true;
      return r.server_differs();
    case FaultKind::kRefuses:
      refuses_for_good_ = fault.lasts_ns > 1'500 * kMs;
      refuses_until_ns_ = until_ns;
      return;
  }
}

void ReplicaWorld::spoil_checkpoint(const Fault& fault) {
  auto& all = hosts_.seen_by(fault.replica);
  if (all.empty()) return;
  if (fault.kind == FaultKind::kDamage) {
    all.back().damaged = true;
  } else if (fault.kind == FaultKind::kNoRestore) {
    all.back().starts = false;
  } else {
    differed_ = true;
    all.back().hash ^= 1;
  }
}

void ReplicaWorld::lose_host(unsigned id, std::int64_t until_ns) {
  if (!settings_.hosts) return;
  supervisor_of(id).lose_host();
  replicas_[id]->lose_host();
  hosts_.lose(id, until_ns);
  std::erase_if(proceeds_, [id](const Proceeds& p) { return p.id == id; });
}

// --- actions of replicas
// ---------------------------------------------------------------------------

void ReplicaWorld::node_ended(unsigned id, node::ExitStatus how) {
  if (how == node::ExitStatus::kServerDied) {
    ++result_.restarts;
  } else {
    node_restarts();
  }
  std::erase_if(proceeds_, [id](const Proceeds& p) { return p.id == id; });
  supervisor_of(id).node_ended(id, how);
}

void ReplicaWorld::node_restarts() {
  ++result_.restarts;
  constexpr unsigned kRestartsMost = 30;
  if (calm_ns_ != 0 && ++calm_restarts_ > kRestartsMost) violate("LOOP: " + describe());
}

void ReplicaWorld::server_runs(unsigned id) {
  has_run_[id] = true;
  supervisor_of(id).server_runs(id);
}

void ReplicaWorld::caught_up(unsigned id) { supervisor_of(id).caught_up(id); }

void ReplicaWorld::server_exited(unsigned id) {
  trace_line("replica %u: its server crashed", id);
  if (exited_ns_ == 0) exited_ns_ = now_ns_;
  lost_ns_ = stalled_since_ns_ = 0;
  if (settings_.mutant == Mutant::kSurviveCrash) return replicas_[id]->kill();
  if (settings_.hosts) replicas_[id]->leaves();
  supervisor_of(id).server_exited(id);
}

void ReplicaWorld::version_begins(unsigned id, std::uint64_t at, std::uint32_t version) {
  trace_line("replica %u: version %u of the server begins after entry %llu", id, version,
             static_cast<unsigned long long>(at));
  const auto [known, first] = versions_.try_emplace(at, version);
  if (known->second != version) violate("VERSION: " + describe());
}

void ReplicaWorld::group_ends(const Outcome& problem, int status) {
  result_.ended = exited_ns_ != 0 && problem.ok() && status != 0;
  if (result_.ended) return;
  violate("ENDED: crane-run ends the group: " +
          (problem.ok() ? "status " + std::to_string(status) : problem.error().text));
}

// If a majority of hosts leaves, the rest cannot continue.
void ReplicaWorld::replica_leaves(unsigned id) {
  left_[id] = true;
  const auto left = std::count(left_.begin(), left_.end(), true);
  result_.ended = static_cast<unsigned>(left) * 2 > replicas();
}

void ReplicaWorld::refusal_reported(unsigned id, const std::string& why) {
  supervisor_of(id).refused(why);
}

BeginRules ReplicaWorld::rules_on_host(unsigned id) const {
  BeginRules rules;
  if (settings_.on_disk) return rules;
  rules.restores = rules.may_begin = replicas_[id]->was_here() || !hosts_.seen_by(id).empty();
  return rules;
}

std::optional<StoredCheckpoint> ReplicaWorld::fetch_for(unsigned id, std::uint64_t behind) {
  const auto has_files = [this](unsigned from) { return replicas_[from]->up(); };
  auto found = hosts_.fetch(id, behind, has_files);
  for (unsigned from = 0; !found && from < replicas(); ++from) {
    const Lacked lacked{ReplicaId{static_cast<std::uint8_t>(id)}, Index{behind}};
    if (from != id) replicas_[from]->receive(lacked);
  }
  return found;
}

void ReplicaWorld::fetched(unsigned id, StoredCheckpoint one) {
  ++result_.fetched;
  trace_line("replica %u has fetched the checkpoint at entry %llu of replica %u", id,
             static_cast<unsigned long long>(one.at), one.by);
  one.by = id;
  hosts_.publish(one, 0);
}

void ReplicaWorld::published(const StoredCheckpoint& one, std::uint64_t relied, bool dumped) {
  trace_line("replica %u has a checkpoint at entry %llu", one.by,
             static_cast<unsigned long long>(one.at));
  ++result_.checkpoints;
  if (dumped) dumped_ns_ = now_ns_;
  hosts_.publish(one, relied);
}

bool ReplicaWorld::takes_inputs(unsigned id) const {
  const ModelReplica& r = *replicas_[id];
  if (r.log_is_full() || no_room()) return false;  // KEEP-1
  const std::uint64_t most = kPacedMoments * settings_.runs_at_once;
  return !settings_.paced || log_.committed() <= r.applied() + most;
}

void ReplicaWorld::client_sends() {
  const unsigned leader = log_.leader();
  const bool busy = now_ns_ < settings_.busy_ns;
  if (now_ns_ < next_input_ns_ || leader == kNone) return;
  if (!replicas_[leader]->serves() || !takes_inputs(leader)) return;
  const unsigned burst = busy ? 1 + settings_.inputs_per_s / 100 : 1;
  for (unsigned n = 0; n < burst; ++n) {
    (void)log_.propose(leader, {LogEntry::Kind::kInput, {}, next_request_++});
  }
  // Later there are hardly any, so that no checkpoint is due by the log's length.
  const bool answered = calm_ns_ != 0 && answered_ns_ > calm_ns_;
  next_input_ns_ = now_ns_ + (busy       ? 1'000'000'000LL / settings_.inputs_per_s
                              : answered ? 10'000 * kMs
                                         : 200 * kMs);
}

void ReplicaWorld::answered(std::uint64_t index) {
  const LogEntry::Kind kind = log_.entry(index).kind;
  if (kind != LogEntry::Kind::kInput && kind != LogEntry::Kind::kClient) return;
  if (index > log_.committed()) violate("KEPT: a client was answered before it was committed");
  answered_ns_ = now_ns_;
  ++result_.answered;
}

std::uint64_t ReplicaWorld::next_hash(std::uint64_t before, std::uint64_t index) const {
  const LogEntry& e = log_.entry(index);
  const bool counts = e.kind == LogEntry::Kind::kInput || e.kind == LogEntry::Kind::kClient;
  return mix(before, counts ? e.number : 0);
}

std::uint64_t ReplicaWorld::hash_at(std::uint64_t index) {
  while (hashes_.size() <= index) hashes_.push_back(next_hash(hashes_.back(), hashes_.size()));
  return hashes_[index];
}

void ReplicaWorld::violate(const std::string& what) {
  if (!result_.violation.empty()) return;
  result_.violation = what;
  trace_line("VIOLATION %s", what.c_str());
}

void ReplicaWorld::trace_line(const char* format, ...) {
  if (settings_.trace == nullptr) return;
  std::fprintf(settings_.trace, "%10.3f ms  #%llu  ", static_cast<double>(now_ns_) / 1e6,
               static_cast<unsigned long long>(points_));
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(settings_.trace, format, arguments);
  va_end(arguments);
  std::fputc('\n', settings_.trace);
}

Result run_replicas(std::uint64_t seed, Settings settings) {
  consensus::sim::Random draw(seed * 2 + 1);
  settings.replicas = draw.chance(800) ? 3 : draw.chance(700) ? 5 : 7;
  settings.ring_entries = 64 << draw.below(3);
  settings.hosts = draw.chance(500);
  settings.on_disk = draw.chance(400);
  settings.limited = draw.chance(300);
  settings.paced = draw.chance(600);
  if (settings.limited) settings.ring_entries *= 4;  // a PASSED follows each input
  settings.runs_at_once = draw.chance(200) ? 1 : 4;
  if (draw.chance(100)) {
    settings.compute_each = static_cast<unsigned>(draw.between(10, 50));
    settings.compute_ns = static_cast<std::int64_t>(draw.between(20, 200)) * kMs;
  }
  if (draw.chance(50)) settings.crashes_by = static_cast<std::uint32_t>(draw.between(20, 300));
  settings.every_ns = draw.chance(300) ? 500 * kMs : 0;
  settings.inputs_per_s = static_cast<unsigned>(20 << draw.below(6));
  std::vector<Fault> faults;
  std::uint64_t span = 100 + draw.below(500);
  if (consensus::sim::Random more(seed * 2); more.chance(300)) {
    settings.clients = static_cast<unsigned>(more.between(1, 4));
    settings.clients_seed = more.next();
    settings.ring_entries *= 2;  // more arrives in one moment
    span *= 2;                   // the span also counts actions for clients
  }
  for (std::uint64_t n = draw.between(1, 8); n > 0; --n) {
    Fault f;
    f.point = draw.between(1, span);
    f.kind = static_cast<FaultKind>(draw.below(kFaultKinds));
    f.replica = static_cast<unsigned>(draw.below(settings.replicas));
    f.lasts_ns = static_cast<std::int64_t>(draw.between(50, 3000)) * kMs;
    faults.push_back(f);
  }
  if (consensus::sim::Random more(seed * 3); more.chance(150)) {
    const auto id = static_cast<unsigned>(more.below(settings.replicas));
    faults.push_back({more.between(1, span), FaultKind::kNoRestore, id, 0});
  }
  std::sort(faults.begin(), faults.end(),
            [](const Fault& a, const Fault& b) { return a.point < b.point; });
  if (settings.trace != nullptr) {
    std::fprintf(settings.trace, "%u replicas%s%s%s, ring of %llu entries, %u inputs/s\n",
                 settings.replicas, settings.hosts ? " on hosts" : "",
                 settings.on_disk ? ", stores" : "", settings.limited ? ", stall rule" : "",
                 static_cast<unsigned long long>(settings.ring_entries), settings.inputs_per_s);
  }
  return ReplicaWorld(settings, faults).run();
}

}  // namespace crane::replica::sim
