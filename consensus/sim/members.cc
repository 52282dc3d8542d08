// SPDX-License-Identifier: Apache-2.0
// Changes of members in a simulated group: an operator requests them at random.
#include <algorithm>

#include "consensus/sim/cluster.h"

namespace crane::consensus::sim {

using core::MemberChange;

void Cluster::plan_change() {
  if (faults_.change_every_ns == 0) return;
  world_.after(world_.random.about(faults_.change_every_ns), [this] {
    if (faults_over_) return;
    plan_change();
    change();
  });
}

// The operator sends the request to any replica that leads or is about to.
void Cluster::change() {
  const auto begin = static_cast<unsigned>(world_.random.below(faults_.replicas));
  for (unsigned k = 0; k < faults_.replicas; ++k) {
    const unsigned id = (begin + k) % faults_.replicas;
    const Node& n = nodes_[id];
    if (n.life != Life::kUp || n.core->leading_view() == View{0}) continue;
    change_by(id);
    pump(id);
    return;
  }
}

void Cluster::change_by(unsigned leader) {
  Node& n = nodes_[leader];
  Random& r = world_.random;
  const auto about = static_cast<unsigned>(r.below(faults_.replicas));
  const core::Members& members = n.core->members();
  const MemberRole role = members.role(id_of(about));
  MemberChange change{MemberChange::Kind::kRemove, id_of(about)};
  if (role == MemberRole::kNone) {
    // Sometimes the operator picks the wrong kind.
    const bool analysis = faults_.analysis && (about == faults_.analysis_slot()) != r.chance(150);
    change.kind = analysis ? MemberChange::Kind::kAddAnalysis : MemberChange::Kind::kAdd;
    if (nodes_[about].life == Life::kDown && r.chance(700)) {
      if (r.chance(500) && may_lose(about)) lose_machine(about);
      restart(about);
    }
  } else if (role == MemberRole::kVoter && r.chance(300)) {
    const crane::Outcome done = n.core->transfer(id_of(about), now_at(leader));
    trace("replica %u hands over to %u: %s", leader, about, done.ok() ? "yes" : "no");
    return;
  } else if (role != MemberRole::kVoter && r.chance(800)) {
    change.kind = MemberChange::Kind::kPromote;
  } else if (members.voters() <= 2 && r.chance(700)) {
    return;
  }
  const auto index = n.core->change_members(change, now_at(leader));
  trace("replica %u changes members: kind %d of %u: %s", leader, static_cast<int>(change.kind),
        about, index.ok() ? "proposed" : index.error().what);
}

void Cluster::on_config(const core::Entry& entry) {
  const auto members = core::Members::decode(entry.payload);
  if (!members) return violate("MEMBERS: an invalid CONFIG");
  ++outcome_.changes;
  violate(analysis_.on_config(faults_.analysis_slot(), *members));
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    const core::Members& before = committed_config_.members;
    if (members->voter(id_of(i)) && before.role(id_of(i)) == MemberRole::kReturning) {
      ++outcome_.returns;
    }
    const bool gone = before.member(id_of(i)) && !members->member(id_of(i));
    if (gone && nodes_[i].leads) ++outcome_.removals_of_leaders;
  }
  committed_config_ = {entry.at, *members};
}

// The replica learned of its removal: its process ends, and may be restarted.
void Cluster::on_removed(unsigned id) {
  const std::uint32_t process = nodes_[id].process;
  world_.after(1, [this, id, process] {
    if (nodes_[id].process == process && nodes_[id].life != Life::kDown) crash(id);
  });
  world_.after(world_.random.between(1'000'000, 100'000'000), [this, id] { revive(id); });
}

// The operator restarts it; at the end only if it is a member (it may have learned late).
void Cluster::revive(unsigned id) {
  if (ended_) return;
  if (!faults_over_ || newest_config().members.member(id_of(id))) return restart(id);
  world_.after(100'000'000, [this, id] { revive(id); });
}

core::ConfigAt Cluster::newest_config(unsigned id) const {
  const Node& n = nodes_[id];
  if (!n.core) return n.config;
  return {n.core->config_at(), n.core->members()};
}

core::ConfigAt Cluster::newest_config() const {
  core::ConfigAt newest = committed_config_;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    const core::ConfigAt config = newest_config(i);
    if (config.at > newest.at) newest = config;
  }
  return newest;
}

// A group outlives the loss of a minority's memory (C5): by the newest committed CONFIG, and by
// each one that may yet be committed.
bool Cluster::may_lose(unsigned id) const {
  // A replica that lost its memory and one that needs a checkpoint together may leave no majority:
  // not too early.
  const bool laps = faults_.ring_bytes < (1U << 16) && !faults_.disk;
  if (laps && outcome_.views < faults_.views_min) return false;
  if (!outlives_loss(committed_config_.members, id)) return false;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    const core::ConfigAt config = newest_config(i);
    if (config.at.index <= committed_config_.at.index) continue;
    if (!outlives_loss(config.members, id)) return false;
  }
  return true;
}

bool Cluster::outlives_loss(const core::Members& members, unsigned id) const {
  if (id < faults_.replicas && !members.voter(id_of(id))) return true;
  return members.quorum_of([&](ReplicaId voter) {
    return voter != id_of(id) && members.incarnation(voter) == nodes_[value(voter)].incarnation;
  });
}

// True if a majority can continue without a checkpoint.
bool Cluster::some_majority_needs_none() const {
  std::uint64_t furthest = 0;
  for (const Node& n : nodes_) {
    if (n.life == Life::kUp) furthest = std::max(furthest, n.core->end_pos());
  }
  return newest_config().members.quorum_of([&](ReplicaId voter) {
    const Node& n = nodes_[value(voter)];
    // A replica that lost its memory and was lapped may not know it yet.
    return n.life == Life::kUp && !n.core->needs_checkpoint() &&
           furthest - n.core->end_pos() <= faults_.ring_bytes;
  });
}

// True if a replica does not have all entries yet, or is about to get its vote back.
bool Cluster::some_catch_up() const {
  for (const Node& leader : nodes_) {
    if (!leader.leads || leader.life != Life::kUp) continue;
    for (unsigned i = 0; i < faults_.replicas; ++i) {
      const Node& n = nodes_[i];
      const bool returns = committed_config_.members.role(id_of(i)) == MemberRole::kReturning;
      if (returns && n.life == Life::kUp) return true;
      if (n.life != Life::kUp || value(n.core->delivered()) >= agreement_.committed()) continue;
      if (leader.core->peer_state(id_of(i)) == core::PeerState::kStreaming) return true;
      if (faults_.disk || checkpoints_on()) return true;  // behind, or about to be written to again
    }
  }
  return false;
}

// After a calm second every member has all entries and its vote, and a non-member knows that it is
// one.
void Cluster::check_member_at_end(unsigned id) {
  const Node& n = nodes_[id];
  for (const Node& leader : nodes_) {
    if (!leader.leads || leader.life != Life::kUp) continue;
    const bool behind = leader.core->peer_state(id_of(id)) == core::PeerState::kBehind;
    if (behind && !faults_.disk && !checkpoints_on()) return;  // no source (L4)
  }
  const MemberRole role = committed_config_.members.role(id_of(id));
  if (role == MemberRole::kNone) {
    const bool believes =
        n.life == Life::kUp && n.core->role() != Role::kLearner && n.core->role() != Role::kRemoved;
    if (believes)
      violate("MEMBERS: replica " + std::to_string(id) + " does not know that it was removed");
    return;
  }
  if (role == MemberRole::kReturning) {
    return violate("LIVENESS: replica " + std::to_string(id) + " did not get its vote back");
  }
  if (committed_config_.members.incarnation(id_of(id)) == core::kAnyIncarnation) return;
  if (n.life != Life::kUp) {
    return violate("LIVENESS: replica " + std::to_string(id) + " is a member and is not running");
  }
  violate(liveness_.at_end(id, value(n.core->delivered()), agreement_.committed()));
}

}  // namespace crane::consensus::sim
