// SPDX-License-Identifier: Apache-2.0
// The node's dealings with the replicated log: roles, proposals, commits.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "dmt/base/assert.h"
#include "dmt/sequence/hash_entry.h"
#include "dmt/tuning.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/tuning.h"
#include "proxy/node/node.h"
#include "proxy/node/server_maps.h"

namespace crane::node {
Index Node::applied() const noexcept {
  return Index{layout_->scheduler.applied_index.load(std::memory_order_acquire)};
}

void Node::open_intake() {
  LogIntakeActions actions;
  actions.holds = [this] { return recovery_->holds_log(); };
  actions.held = [this](const consensus::EntryView& entry) {
    stalls_->committed(static_cast<EntryType>(entry.type), entry.payload);
  };
  actions.deliver = [this](const consensus::EntryView& entry, bool was_held) {
    take_entry(entry, was_held);
  };
  intake_ = std::make_unique<LogIntake>(std::move(actions));
}

void Node::on_committed(const consensus::EntryView& entry) {
  if (end_.done()) return;
  if (!intake_->is_next(entry.at.index)) {  // K1: the server would lack what is between
    fail(
        ExitStatus::kMissedEntries,
        fmt::format("the log begins at entry {} here, entry {} is needed: what this replica missed "
                    "while it was away is gone; a replica cannot come back yet",
                    value(entry.at.index), value(intake_->last()) + 1));
    return;
  }
  outputs_->committed(entry);
  if (!LogIntake::is_of_consensus(entry)) {
    leadership_.committed(static_cast<std::int64_t>(entry.stamp_ns), now_ns_);
  }
  intake_->committed(entry);
}

void Node::take_entry(const consensus::EntryView& entry, bool was_held) {
  const auto type = static_cast<EntryType>(entry.type);
  if (type == EntryType::kStart) {
    const char* what = mode_.member() ? first_difference(agreed_, entry.payload) : nullptr;
    if (what != nullptr) {
      const unsigned leader = value(view_owner(entry.at.view));
      return fail(ExitStatus::kDisagrees, disagreement(config_, what, leader));
    }
  }
  ConnectBody body;
  if (type == EntryType::kConnect && proxy::read_body(entry.payload, body)) {
    outputs_->connected(ConnId{value(entry.at.index)}, body);
    mode_.connected(ConnId{value(entry.at.index)}, body);
  }
  if (!was_held && !foretold_) stalls_->committed(type, entry.payload);
  if (type == EntryType::kHash) {
    live_check_->committed(entry);
    consensus::EntryView bare = entry;
    // The server has no use for the rest.
    bare.payload = entry.payload.first(std::min(entry.payload.size(), sizeof(HashEntryHead)));
    return slot0_->committed(bare);
  }
  recovery_->before_server(entry);
  slot0_->committed(entry);
  recovery_->after_server(entry, now_ns_);
}

void Node::on_role(consensus::Role role, View view, ReplicaId leader) {
  leadership_.role(role, view, leader);
  const bool known = value(leader) < config_.replicas;
  spdlog::info("{} in view {}.{}, leader {}", consensus::name(role), view_counter(view),
               value(view_owner(view)), known ? std::to_string(value(leader)) : "not known");
  supervisor_.role(consensus::name(role), view_counter(view), value(leader));
  if (leadership_.leads() && consensus_ != nullptr) tell_members();
}

// Carries out what on_role noted, at a point where no connection is in use.
void Node::follow_role() {
  const bool changed = leadership_.take_changed();
  if (leadership_.take_deposed()) {
    layout_->scheduler.leading.store(0, std::memory_order_relaxed);
    proxy_->lead(false);
    if (host_ != nullptr) host_->give_up_address();
    grants_->pause();
    report_status();
  }
  if (changed && host_ != nullptr) host_->follow(quorum_.refuses());
  const bool another_leads = leadership_.role() == consensus::Role::kFollower &&
                             value(leadership_.leader()) < config_.replicas;
  if (changed) requests_->follow(another_leads);
  if (end_.stopping() && proxy_->leading()) proxy_->lead(false);
  if (!leadership_.leads() || exit_.exited() || end_.stopping()) return;
  if (!leadership_.started()) propose_start();
  if (leadership_.admitted(applied()) && !proxy_->leading()) {  // O2
    proxy_->lead(true);
    if (host_ != nullptr) host_->take_address();
    report_status();
  }
}

void Node::propose_start() {
  StartBody body{};
  std::copy(config_.secret.begin(), config_.secret.end(), std::begin(body.seed));
  body.wall_offset_ns = realtime_ns() - leadership_.now(now_ns_);
  body.leader = config_.replica;
  layout_->scheduler.leading.store(1, std::memory_order_seq_cst);
  std::array<std::byte, sizeof body + sizeof agreed_> payload;
  std::memcpy(payload.data(), &body, sizeof body);
  std::memcpy(payload.data() + sizeof body, agreed_.data(), sizeof agreed_);
  // Busy: the next round; deposed: never.
  if (!leadership_.propose_start(dmt::kStartGrant, payload, now_ns_).ok()) return;
  live_check_->lead();
  pacing_->lead();
  grants_->lead();
}

Result<Index> Node::propose(EntryType type, GrantTurns grant, std::span<const std::byte> body) {
  return leadership_.propose(type, grant, body, now_ns_);
}

void Node::propose_inputs() {
  if (proxy_->batch().empty()) return;
  if (proxy_->propose_inputs(grants_->input_grant()).ok()) grants_->input_proposed();
}

void Node::propose_on_own() {
  if (!leadership_.started() || exit_.exited() || end_.stopping()) return;
  if (pacing_->waits()) return grants_->pause();  // W4: looked at again soon, like all who wait
  grants_->step({applied(), leadership_.proposed(), leadership_.now(now_ns_)},
                [this](EntryType type, GrantTurns grant) { (void)propose(type, grant, {}); });
}

void Node::open_stall_watch() {
  StallActions actions;
  actions.probe = [this](std::uint16_t process) { guard_->probe(process); };
  actions.propose = [this](EntryType type, std::span<const std::byte> body) {
    const bool grants = type == EntryType::kAttach;
    return propose(type, grants ? grants_->input_grant() : 0, body).ok();
  };
  actions.diverged = [this](const char* why) { fail(ExitStatus::kFenced, why); };
  stalls_ = std::make_unique<StallWatch>(*layout_, config_.replicas, std::move(actions));
}

void Node::open_port_questions() {
  PortActions actions;
  actions.has = [this](std::uint16_t port) { return proxy_->has_listener(port); };
  actions.open = [this](std::uint16_t port) { return ask_for_port(port); };
  actions.propose = [this](const PortBody& body) {
    return propose(EntryType::kPort, grants_->input_grant(), proxy::bytes_of(body)).ok();
  };
  ports_ = std::make_unique<PortQuestions>(*layout_, std::move(actions));
}

void Node::look_for_stalls() {
  // Also when the own server has ended: the others' get to their end by what this one has passed.
  stall_due_ns_ = stalls_->step(now_ns_, {leadership_.started(), leadership_.admitted(applied())});
}

void Node::open_pacing() {
  pacing_ = std::make_unique<ClientPacing>(ReplicaId{config_.replica}, lag_of(config_),
                                           [this] { return consensus_->members(); });
  progress_ = std::make_unique<ProgressReporter>([this](const proxy::ProgressNote& note) {
    (void)consensus_->send_note(leadership_.leader(), proxy::bytes_of(note));
  });
}

void Node::throttle() {
  const ClientPacing::Seen seen{leadership_.leads(),    leadership_.busy(),
                                proxy_->paused(),       applied(),
                                leadership_.proposed(), slot0_->waiting_bytes()};
  const bool pause = pacing_->step(seen, now_ns_);
  if (pause != proxy_->paused()) proxy_->pause(pause);
}

void Node::open_live_check() {
  LiveCheckActions actions;
  actions.propose = [this](std::span<const std::byte> payload) {
    return propose(EntryType::kHash, grants_->input_grant(), payload);
  };
  actions.send = [this](ReplicaId to, std::span<const std::byte> message) {
    (void)consensus_->send_note(to, message);
  };
  actions.members = [this] { return consensus_->members(); };
  actions.maps = [this] { return maps_of(guard_->pid()); };
  actions.compared = [this](const proxy::Digest& own, const proxy::Digests& logged) {
    mode_.digest(ReplicaId{config_.replica}, own, logged);
  };
  actions.diverged = [this](const std::string& alarm) {
    recovery_->distrust(live_check_->alarms().unbroken());
    fail(ExitStatus::kDiverged, alarm +
                                    "; this replica is fenced, start the group again; "
                                    "crane-run --record DIR --trace keeps every turn");
  };
  live_check_ = std::make_unique<LiveCheck>(config_, *layout_, *outputs_, leadership_,
                                            mode_.member(), std::move(actions));
}

LiveCheck::Seen Node::live_check_seen() const noexcept {
  const bool goes_on = !end_.stopping() && !exit_.exited();
  return {leadership_.leads() && goes_on && proxy_->leading(), intake_->counts()};
}

void Node::on_note(ReplicaId from, std::span<const std::byte> note) {
  if (recovery_->heard(note)) return;
  proxy::ProgressNote progress;
  if (note.size() == sizeof progress && proxy::read_body(note, progress)) {
    pacing_->heard(from, progress, now_ns_);
    return;
  }
  (void)live_check_->heard(from, note);
}

// To the leader, which may wait for it.
void Node::report_progress() {
  progress_due_ns_ = proxy::kNever;
  if (leadership_.leads() || !mode_.member()) return;
  progress_->committed(intake_->last(), now_ns_);
  if (recovery_->holds_log() || value(leadership_.leader()) >= config_.replicas) return;
  progress_due_ns_ = progress_->step(applied(), recovery_->catches_up(), now_ns_);
}

}  // namespace crane::node
