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

namespace crane::node {
namespace {
// Entry types from here on are consensus' own.
constexpr std::uint8_t kConsensusTypes = 0xf0;
constexpr std::int64_t kTellOfWaitsNs = 60'000'000'000;
}  // namespace

Index Node::applied() const noexcept {
  return Index{layout_->scheduler.applied_index.load(std::memory_order_acquire)};
}

void Node::on_committed(const consensus::EntryView& entry) {
  if (done_) return;
  const std::uint64_t next = value(committed_) + 1;
  if (value(entry.at.index) != next) {  // K1: the server would lack what is between
    fail(
        ExitStatus::kMissedEntries,
        fmt::format("the log begins at entry {} here, entry {} is needed: what this replica missed "
                    "while it was away is gone; a replica cannot come back yet",
                    value(entry.at.index), next));
    return;
  }
  committed_ = entry.at.index;
  outputs_->committed(entry);
  log_pos_ = entry.end_pos;
  if (entry.type >= kConsensusTypes) return;
  clock_.committed(static_cast<std::int64_t>(entry.stamp_ns), now_ns_);
  if (holds_log()) {
    // What is about clocks, not places of the log, is what the server may need to come to rest.
    stalls_->committed(static_cast<EntryType>(entry.type), entry.payload);
    held_.push_back({entry, {entry.payload.begin(), entry.payload.end()}});
    return;
  }
  take_entry(entry, false);
}

void Node::take_entry(const consensus::EntryView& entry, bool was_held) {
  const auto type = static_cast<EntryType>(entry.type);
  ++entries_[entry.type % entries_.size()];
  if (type == EntryType::kStart) {
    if (value(first_start_) == 0) first_start_ = entry.at.index;
    const char* what = mode_.member() ? first_difference(agreed_, entry.payload) : nullptr;
    if (what != nullptr) {
      const unsigned leader = value(view_owner(entry.at.view));
      disagree(what, leader);
      return;
    }
  }
  ConnectBody body;
  if (type == EntryType::kConnect && proxy::read_body(entry.payload, body)) {
    outputs_->connected(ConnId{value(entry.at.index)}, body);
    mode_.connected(ConnId{value(entry.at.index)}, body);
  }
  if (!was_held && !foretold_) stalls_->committed(type, entry.payload);
  taken_ = {entry.at, entry.end_pos, entry.stamp_ns};
  if (type == EntryType::kHash) {
    note_hash(entry);
    consensus::EntryView bare = entry;
    // The server has no use for the rest.
    bare.payload = entry.payload.first(std::min(entry.payload.size(), sizeof(HashEntryHead)));
    return slot0_->committed(bare);
  }
  if (type == EntryType::kRestart) restart_at(entry);
  slot0_->committed(entry);
  if (type == EntryType::kCheckpoint && mode_.member()) checkpoint_at(entry);
}

void Node::on_role(consensus::Role role, View view, ReplicaId leader) {
  if (leads_ && (role != consensus::Role::kLeader || view != view_)) {
    leads_ = false;
    deposed_ = true;
    busy_ = false;
  }
  role_ = role;
  view_ = view;
  leader_ = leader;
  if (role == consensus::Role::kLeader) leads_ = true;
  role_changed_ = true;
  const bool known = value(leader) < config_.replicas;
  spdlog::info("{} in view {}.{}, leader {}", consensus::name(role), view_counter(view),
               value(view_owner(view)), known ? std::to_string(value(leader)) : "not known");
  supervisor_.role(consensus::name(role), view_counter(view), value(leader));
  if (leads_ && consensus_ != nullptr) tell_members();
}

// Carries out what on_role noted, at a point where no connection is in use.
void Node::follow_role() {
  dmt::SchedulerState& s = layout_->scheduler;
  const bool changed = std::exchange(role_changed_, false);
  if (deposed_) {
    deposed_ = false;
    s.leading.store(0, std::memory_order_relaxed);
    proxy_->lead(false);
    virtual_address_.give_up();
    own_due_ns_ = proxy::kNever;
    report_status();
  }
  if (changed && config_.host) follow_leader();
  const bool succeeded = role_ == consensus::Role::kFollower && value(leader_) < config_.replicas;
  if (changed && succeeded && fit_at_ns_ != proxy::kNever) fit_at_ns_ = 0;  // another one leads
  if (stopping_ && proxy_->leading()) proxy_->lead(false);
  if (!leads_ || server_exited_ || stopping_) return;
  if (started_view_ != view_) propose_start();
  const bool admitted = started_view_ == view_ && applied() >= start_;
  if (admitted && !proxy_->leading()) {  // O2
    proxy_->lead(true);
    take_virtual_address();
    report_status();
  }
}

void Node::propose_start() {
  StartBody body{};
  std::copy(config_.secret.begin(), config_.secret.end(), std::begin(body.seed));
  body.wall_offset_ns = realtime_ns() - clock_.now(now_ns_);
  body.leader = config_.replica;
  layout_->scheduler.leading.store(1, std::memory_order_seq_cst);
  const View view = view_;
  std::array<std::byte, sizeof body + sizeof agreed_> payload;
  std::memcpy(payload.data(), &body, sizeof body);
  std::memcpy(payload.data() + sizeof body, agreed_.data(), sizeof agreed_);
  const Result<Index> index = propose(EntryType::kStart, dmt::kStartGrant, payload);
  if (!index.ok()) return;  // busy: the next round; deposed: never
  started_view_ = view;     // O1
  verify_.lead();
  flow_.lead();
  digests_.clear();
  start_ = index.value();
  seen_applied_ = Index{};
}

Result<Index> Node::propose(EntryType type, GrantTurns grant, std::span<const std::byte> body) {
  if (!leads_) return Error{Code::kNotLeader, 0, "not the leader"};  // O3
  const auto stamp = static_cast<std::uint64_t>(clock_.next_stamp(now_ns_));
  Result<Index> index = consensus_->propose(static_cast<std::uint8_t>(type), stamp, grant, body);
  busy_ = !index.ok() && index.error().code == Code::kBusy;
  if (index.ok()) {
    CRANE_ASSERT(type == EntryType::kStart || value(start_) != 0);  // O1
    // Those of the stall rule grant nothing: nobody waits for their admission.
    if (type != EntryType::kPreempt && type != EntryType::kPassed) proposed_ = index.value();
  }
  return index;
}

void Node::propose_inputs() {
  if (proxy_->batch().empty()) return;
  if (proxy_->propose_inputs(policy_.input_grant()).ok()) policy_.input_proposed();
}

void Node::propose_on_own() {
  if (!leads_ || started_view_ != view_ || server_exited_ || stopping_) return;
  if (waits_since_ns_ != 0) {  // W4: looked at again soon, like all who wait
    own_due_ns_ = proxy::kNever;
    return;
  }
  dmt::SchedulerState& s = layout_->scheduler;
  proxy::Observation seen;
  seen.applied = seen_applied_ = applied();
  seen.stalled = seen_stalled_ = s.stalled.load(std::memory_order_relaxed) != 0 &&
                                 s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  seen.grant_low = seen_low_ = s.grant_low.load(std::memory_order_relaxed) != 0;
  seen.lined_up = s.lined_up.load(std::memory_order_relaxed) != 0 && !seen.stalled &&
                  s.holder.load(std::memory_order_acquire) == dmt::kHolderIdle;
  seen.next_deadline_ns = s.next_deadline.load(std::memory_order_relaxed);
  seen.proposed = proposed_;
  seen.virtual_now_ns = clock_.now(now_ns_);
  const proxy::Decision decision = policy_.step(seen);
  if (decision.what != proxy::Propose::kNothing) {
    const bool time = decision.what == proxy::Propose::kTime;
    (void)propose(time ? EntryType::kTime : EntryType::kBubble, decision.grant, {});
    own_due_ns_ = proxy::kNever;
  } else if (seen.proposed <= seen.applied) {
    own_due_ns_ = decision.look_again_ns;
  } else if (own_due_ns_ <= seen.virtual_now_ns) {
    own_due_ns_ = proxy::kNever;  // else it stays armed: the deadline it is for is still there
  }
  // The timer may be late for the deadline on purpose (G3): the server need not ring for it again.
  const std::int64_t told =
      own_due_ns_ == proxy::kNever ? own_due_ns_ : std::min(own_due_ns_, seen.next_deadline_ns);
  s.node_timer.store(told, std::memory_order_relaxed);
}

void Node::open_stall_watch() {
  StallActions actions;
  actions.probe = [this](std::uint16_t process) { guard_->probe(process); };
  actions.propose = [this](EntryType type, std::span<const std::byte> body) {
    const bool grants = type == EntryType::kAttach;
    return propose(type, grants ? policy_.input_grant() : 0, body).ok();
  };
  actions.diverged = [this](const char* why) { fail(ExitStatus::kFenced, why); };
  stalls_ = std::make_unique<StallWatch>(*layout_, config_.replicas, std::move(actions));
}

void Node::open_port_questions() {
  PortActions actions;
  actions.has = [this](std::uint16_t port) { return proxy_->has_listener(port); };
  actions.open = [this](std::uint16_t port) { return ask_for_port(port); };
  actions.propose = [this](const PortBody& body) {
    return propose(EntryType::kPort, policy_.input_grant(), proxy::bytes_of(body)).ok();
  };
  ports_ = std::make_unique<PortQuestions>(*layout_, std::move(actions));
}

void Node::look_for_stalls() {
  // Also when the own server has ended: the others' get to their end by what this one has passed.
  const bool leads = leads_ && started_view_ == view_;
  stall_due_ns_ = stalls_->step(now_ns_, {leads, leads && applied() >= start_});
}

// Clients are read only as fast as the own server admits (C4) and while what it has not read leaves
// half of the inbound blocks free: what is under way needs at most the other half.
void Node::throttle() {
  const std::uint64_t outstanding =
      value(proposed_) > value(applied()) ? value(proposed_) - value(applied()) : 0;
  const std::uint64_t bytes = slot0_->waiting_bytes();
  const bool over = outstanding > proxy::kPipelineEntries || bytes > proxy::kPipelineBytes;
  const bool under = outstanding < proxy::kPipelineEntries / 2 && bytes < proxy::kPipelineBytes / 2;
  if (leads_) flow_.applied(applied(), now_ns_);
  const bool waits = waits_for_followers();
  const bool change = proxy_->paused() ? under && !busy_ && !waits : over || busy_ || waits;
  if (change) proxy_->pause(!proxy_->paused());
  note_waiting(waits && proxy_->paused());
}

void Node::note_waiting(bool waits) {
  if (waits_since_ns_ != 0) waited_ns_ += now_ns_ - waits_since_ns_;
  waits_since_ns_ = waits ? now_ns_ : 0;
  if (!waits || (wait_told_ns_ != 0 && now_ns_ - wait_told_ns_ < kTellOfWaitsNs)) return;
  wait_told_ns_ = now_ns_;
  spdlog::info(
      "clients wait for followers, whose servers are more than {} ms behind this one; they "
      "have for {} ms in all",
      config_.lag_ms, waited_ns_ / 1'000'000);
}

// A majority's servers must be near the leader's (W4).
bool Node::waits_for_followers() const {
  if (!leads_ || !flow_.anybody_late(now_ns_)) return false;
  std::vector<ReplicaId> others;
  std::size_t voters = 0;
  for (const consensus::MemberStatus& m : consensus_->members()) {
    if (m.role != consensus::MemberRole::kVoter) continue;
    ++voters;
    if (m.connected && value(m.id) != config_.replica) others.push_back(m.id);
  }
  return flow_.holds(others, voters / 2, now_ns_);
}

// To the leader, which may wait for it.
void Node::tell_progress() {
  tell_again_ns_ = proxy::kNever;
  if (leads_ || !mode_.member()) return;
  progress_.committed(committed_, now_ns_);
  if (holds_log() || value(leader_) >= config_.replicas) return;
  const bool due = progress_.due(applied(), now_ns_);
  tell_again_ns_ = progress_.again_ns(now_ns_);
  if (catch_up_until_ns_ == 0 && progress_.caught_up(now_ns_)) comes_back_ = 0;
  if (!due) return;
  const proxy::ProgressNote note{value(applied()), comes_back_};
  (void)consensus_->send_note(leader_, proxy::bytes_of(note));  // lost: the next one will tell
}

}  // namespace crane::node
