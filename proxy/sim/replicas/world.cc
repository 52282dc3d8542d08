// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/world.h"

#include <algorithm>
#include <cstdarg>

namespace crane::replica::sim {
namespace {

constexpr std::int64_t kMomentNs = 10 * kMs, kCalmMomentNs = 20 * kMs;
// Behind the last fault: what the rules of recovery allow, with their own pauses (kSpareNs, the
// schedule's, crane-run's).
constexpr std::int64_t kLeaderNs = 1'000 * kMs, kServedNs = 40'000 * kMs, kWholeNs = 180'000 * kMs;
constexpr unsigned kRestartsMost = 30;
// Two looks of crane-ctl; what a loss may cost that status allowed, with an election in it.
constexpr std::int64_t kHonestNs = 300 * kMs, kLossNs = 500 * kMs;
constexpr std::int64_t kEndNs = 400'000 * kMs;

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
    case FaultKind::kTransfer:
      return "transfer";
    case FaultKind::kNoSupervisor:
      return "crane-run stopped";
  }
  return "";
}

ReplicaWorld::ReplicaWorld(std::uint64_t seed, const Settings& settings, std::vector<Fault> faults)
    : settings_(settings),
      random_(seed),
      faults_(std::move(faults)),
      log_(settings.replicas, settings.ring_entries),
      supervisor_(*this) {
  for (unsigned id = 0; id < settings.replicas; ++id) {
    replicas_.push_back(std::make_unique<ModelReplica>(*this, id));
  }
}

Result ReplicaWorld::run() {
  supervisor_.begin();
  while (result_.violation.empty() && !result_.given_up && now_ns_ < kEndNs) {
    step();
    if (calm_ns_ != 0 && all_whole() && answered_ns_ > calm_ns_) {
      result_.whole_ns = now_ns_ - calm_ns_;
      break;
    }
  }
  result_.points = points_;
  result_.checkpoints = checkpoints_.size();
  result_.views = value(log_.view()) / 256;
  return result_;
}

void ReplicaWorld::step() {
  now_ns_ += calm_ns_ != 0 ? kCalmMomentNs : kMomentNs;
  pass_point();
  for (const Proceeds& p : proceeds_) {
    if (p.at_ns <= now_ns_ && !replicas_[p.id]->up()) replicas_[p.id]->proceed();
  }
  std::erase_if(proceeds_, [this](const Proceeds& p) { return p.at_ns <= now_ns_; });
  log_.step(now_ns_);
  supervisor_.step();
  client_sends();
  for (auto& replica : replicas_) replica->step();
  check();
}

// A group in which not all have run yet ends when it loses a node: faults come later.
void ReplicaWorld::pass_point() {
  if (!supervisor_.serving()) return;
  ++points_;
  while (next_fault_ < faults_.size() && faults_[next_fault_].point <= points_) {
    inject(faults_[next_fault_++]);
  }
}

bool ReplicaWorld::passes_point(unsigned id) {
  pass_point();
  return replicas_[id]->life() != ModelReplica::Life::kDown;
}

void ReplicaWorld::inject(const Fault& fault) {
  ModelReplica& r = *replicas_[fault.replica];
  hindered_ = hindered_ || fault.kind != FaultKind::kNoSupervisor;
  const bool alone = next_fault_ >= faults_.size() ||
                     faults_[next_fault_].point > fault.point + kLossNs / kMomentNs * 2;
  const bool calm = proceeds_.empty() && now_ns_ >= slow_until_ns_;
  lost_ns_ = 0;
  if (fault.kind == FaultKind::kKill && alone && calm && r.up() &&
      status().may_lose.value_or(0) > 0) {
    lost_ns_ = now_ns_;
  }
  tell("FAULT %s, replica %u", name(fault.kind), fault.replica);
  switch (fault.kind) {
    case FaultKind::kKill:
      return r.kill();
    case FaultKind::kKillAll:
      for (auto& one : replicas_) one->kill();
      return;
    case FaultKind::kStop:
      if (!r.up()) return;
      proceeds_.push_back({now_ns_ + fault.lasts_ns, fault.replica});
      return r.stop();
    case FaultKind::kPackFails:
      return r.packing_fails();
    case FaultKind::kDamage:
      if (!checkpoints_.empty()) checkpoints_.back().damaged = true;
      return;
    case FaultKind::kFullDisk:
      disk_full_until_ns_ = now_ns_ + fault.lasts_ns;
      return;
    case FaultKind::kSlow:
      slow_ = fault.replica;
      slow_until_ns_ = now_ns_ + fault.lasts_ns;
      return;
    case FaultKind::kTransfer:
      (void)log_.transfer(fault.replica);
      return;
    case FaultKind::kNoSupervisor:
      unsupervised_until_ns_ = now_ns_ + fault.lasts_ns;
      return;
  }
}

void ReplicaWorld::node_ended(unsigned id, ModelReplica::End how) {
  ++result_.restarts;
  if (calm_ns_ != 0 && how == ModelReplica::End::kRestarts && ++calm_restarts_ > kRestartsMost) {
    violate("LOOP: " + describe());
  }
  std::erase_if(proceeds_, [id](const Proceeds& p) { return p.id == id; });
  supervisor_.node_ended(id, how);
}

void ReplicaWorld::client_sends() {
  const unsigned leader = log_.leader();
  const bool busy = now_ns_ < settings_.busy_ns;
  if (now_ns_ < next_input_ns_ || leader == kNone) return;
  const ModelReplica& r = *replicas_[leader];
  if (!r.serves() || r.log_is_full()) return;  // KEEP-1
  const unsigned burst = busy ? 1 + settings_.inputs_per_s / 100 : 1;
  for (unsigned n = 0; n < burst; ++n) {
    (void)log_.propose(leader, {LogEntry::Kind::kInput, {}, next_request_++});
  }
  // Later hardly any, so that no checkpoint comes for the log's length.
  const bool answered = calm_ns_ != 0 && answered_ns_ > calm_ns_;
  next_input_ns_ = now_ns_ + (busy       ? 1'000'000'000LL / settings_.inputs_per_s
                              : answered ? 10'000 * kMs
                                         : 200 * kMs);
}

void ReplicaWorld::answered(std::uint64_t index) {
  if (log_.entry(index).kind != LogEntry::Kind::kInput) return;
  if (index > log_.committed()) violate("KEPT: a client was answered before it was committed");
  answered_ns_ = now_ns_;
  ++result_.answered;
}

void ReplicaWorld::published(const StoredCheckpoint& one) {
  tell("replica %u has a checkpoint at entry %llu", one.by,
       static_cast<unsigned long long>(one.at));
  const auto place =
      std::upper_bound(checkpoints_.begin(), checkpoints_.end(), one.at,
                       [](std::uint64_t at, const StoredCheckpoint& c) { return at < c.at; });
  checkpoints_.insert(place, one);
  // Each replica keeps two.
  const auto own = std::count_if(checkpoints_.begin(), checkpoints_.end(),
                                 [&](const StoredCheckpoint& c) { return c.by == one.by; });
  if (own > 2) {
    checkpoints_.erase(std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                    [&](const StoredCheckpoint& c) { return c.by == one.by; }));
  }
}

std::uint64_t ReplicaWorld::hash_at(std::uint64_t index) {
  while (hashes_.size() <= index) {
    const LogEntry& e = log_.entry(hashes_.size());
    hashes_.push_back(mix(hashes_.back(), e.kind == LogEntry::Kind::kInput ? e.number : 0));
  }
  return hashes_[index];
}

// --- properties ---------------------------------------------------------------------------------

void ReplicaWorld::check() {
  if (log_.lost_committed()) violate("KEPT: a leader lacks what was committed");
  for (const auto& r : replicas_) {
    if (r->applied() > log_.committed()) violate("KEPT: a server has run what was not committed");
    if (r->up() && r->has_server() && r->hash() != hash_at(r->applied())) {
      violate("KEPT: a server has run other inputs");
    }
  }
  const auto up =
      std::count_if(replicas_.begin(), replicas_.end(), [](const auto& r) { return r->up(); });
  const bool majority = static_cast<unsigned>(up) * 2 > settings_.replicas;
  if (log_.leader() == kNone) unled_ns_ = now_ns_;
  if (log_.leader() != kNone || !majority) led_ns_ = now_ns_;
  const bool faults = now_ns_ < settings_.busy_ns || next_fault_ < faults_.size() ||
                      !proceeds_.empty() || disk_full() || now_ns_ < slow_until_ns_ ||
                      !supervised();
  if (faults) {
    calm_ns_ = 0;
    calm_restarts_ = 0;
  } else if (calm_ns_ == 0) {
    calm_ns_ = now_ns_;
  }
  check_status();
  if (calm_ns_ != 0) check_calm();
}

bool ReplicaWorld::all_whole() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [](const auto& r) { return r->whole(); });
}

// As crane-ctl finds it: it asks every node.
control::Verdict ReplicaWorld::status() const {
  control::GroupSeen group;
  for (unsigned id = 0; id < replicas(); ++id) {
    const ModelReplica& r = *replicas_[id];
    control::ReplicaSeen seen;
    seen.replica = static_cast<int>(id);
    seen.seen = r.up()                                  ? control::ReplicaSeen::Seen::kTold
                : r.life() == ModelReplica::Life::kDown ? control::ReplicaSeen::Seen::kGone
                                                        : control::ReplicaSeen::Seen::kSilent;
    seen.connected = log_.acceptor(id).process;
    seen.gets_log = log_.acceptor(id).streaming;
    if (r.up()) seen.told = r.readiness();
    group.replicas.push_back(seen);
  }
  if (log_.leader() != kNone) group.leader = static_cast<int>(log_.leader());
  group.unsupervised = !supervised();
  return control::verdict_of(group);
}

void ReplicaWorld::check_status() {
  const bool waits = now_ns_ < settings_.busy_ns && supervisor_.serving();
  if (!waits || now_ns_ - answered_ns_ < control::kNearMs * kMs || !status().serving) {
    said_ns_ = now_ns_;
  } else if (now_ns_ - said_ns_ > kHonestNs) {
    violate("STATUS: serving, and a client waits; " + describe());
  }
  // That inputs wait for a checkpoint is no cost of the loss.
  const unsigned leader = log_.leader();
  const bool full = leader != kNone && replicas_[leader]->log_is_full();
  if (!waits || full || answered_ns_ > lost_ns_) lost_ns_ = 0;
  if (lost_ns_ != 0 && now_ns_ - lost_ns_ > kLossNs) {
    violate("COSTLESS: a loss that status allowed costs clients too long; " + describe());
  }
}

// No server runs, and there is no place where one could begin: it was damaged, or the log was given
// up, which node.log said.
bool ReplicaWorld::beyond_repair() const {
  const bool damaged = std::any_of(checkpoints_.begin(), checkpoints_.end(),
                                   [](const StoredCheckpoint& c) { return c.damaged; });
  const auto can_begin = [this](const Acceptor& a) {
    if (a.last < log_.committed()) return false;
    return a.first <= 1 ||
           std::any_of(checkpoints_.begin(), checkpoints_.end(),
                       [&](const auto& c) { return !c.damaged && c.at + 1 >= a.first; });
  };
  for (unsigned id = 0; id < replicas(); ++id) {
    const bool lives = replicas_[id]->has_server() && !log_.acceptor(id).lacks;
    if (lives || can_begin(log_.acceptor(id))) return false;
  }
  return damaged || log_given_up_;
}

void ReplicaWorld::check_calm() {
  const std::int64_t calm = now_ns_ - calm_ns_;
  if (calm >= kLeaderNs && beyond_repair()) {
    result_.given_up = true;
    return;
  }
  if (now_ns_ - std::max(led_ns_, calm_ns_) >= kLeaderNs) return violate("LEADER: " + describe());
  if (now_ns_ - std::max(answered_ns_, calm_ns_) >= kServedNs) {
    return violate("SERVED: no client is answered; " + describe());
  }
  if (calm >= kWholeNs && !all_whole()) violate("WHOLE: " + describe());
}

std::string ReplicaWorld::describe() const {
  std::string text = "leader " + (log_.leader() == kNone ? "none" : std::to_string(log_.leader())) +
                     ", committed " + std::to_string(log_.committed());
  for (const auto& r : replicas_) text += "; " + r->describe();
  text += "; checkpoints:";
  for (const StoredCheckpoint& c : checkpoints_) {
    text += " " + std::to_string(c.at) + "/r" + std::to_string(c.by) + (c.damaged ? "!" : "");
  }
  return text;
}

void ReplicaWorld::violate(const std::string& what) {
  if (!result_.violation.empty()) return;
  result_.violation = what;
  tell("VIOLATION %s", what.c_str());
}

void ReplicaWorld::tell(const char* format, ...) {
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
  settings.every_ns = draw.chance(300) ? 500 * kMs : 0;
  settings.inputs_per_s = static_cast<unsigned>(20 << draw.below(6));
  std::vector<Fault> faults;
  const std::uint64_t span = 100 + draw.below(500);
  for (std::uint64_t n = draw.between(1, 8); n > 0; --n) {
    Fault f;
    f.point = draw.between(1, span);
    f.kind = static_cast<FaultKind>(draw.below(kFaultKinds));
    f.replica = static_cast<unsigned>(draw.below(settings.replicas));
    f.lasts_ns = static_cast<std::int64_t>(draw.between(50, 3000)) * kMs;
    faults.push_back(f);
  }
  std::sort(faults.begin(), faults.end(),
            [](const Fault& a, const Fault& b) { return a.point < b.point; });
  if (settings.trace != nullptr) {
    std::fprintf(settings.trace, "%u replicas, ring of %llu entries, %u inputs/s\n",
                 settings.replicas, static_cast<unsigned long long>(settings.ring_entries),
                 settings.inputs_per_s);
  }
  return ReplicaWorld(seed, settings, faults).run();
}

}  // namespace crane::replica::sim
