// SPDX-License-Identifier: Apache-2.0
// The node's part in live checking (proxy/record/verification.h): digests at cuts, judgements, the
// fence.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "proxy/clients/encode.h"
#include "proxy/node/node.h"
#include "proxy/node/turns.h"
#include "proxy/record/first_turn.h"
#include "proxy/record/schedule_record.h"
#include "proxy/record/turn_names.h"

namespace crane::node {

using proxy::Digest;
using proxy::Finding;
using proxy::HashBody;
using proxy::Verdict;

void Node::note_hash(const consensus::EntryView& entry) {
  CommittedHash hash{entry.at, {}};
  if (proxy::decode(entry.payload, hash.body)) hashes_.push_back(std::move(hash));
}

// The own server admitted an entry; what it wrote before is in the digest, what follows is not.
void Node::at_admission(const OutputHeader& header) {
  restarter_->admitted(Index{header.conn});
  if (hashes_.empty() || value(hashes_.front().at.index) != header.conn) return;
  const CommittedHash hash = std::move(hashes_.front());
  hashes_.pop_front();
  if (own_digest_) mode_.digest(ReplicaId{config_.replica}, *own_digest_, hash.body.digests);
  if (mode_.member() && !hash.body.digests.empty()) {
    judge_digests(hash.body, view_owner(hash.at.view));
  }
  const proxy::SchedulePoint here{header.conn, header.clock, header.argument};
  if (hash.body.anew) {
    outputs_->begin_anew(here);
    alarms_.begin_anew(here.index);
    evidence_cut_ = 0;
  }
  if (hash.body.cut && !end_.done()) take_digest(hash.at.view, here);
}

void Node::take_digest(View view, const proxy::SchedulePoint& point) {
  const Digest digest{value(view), point, outputs_->digest()};
  own_digest_ = digest;
  evidence_cut_ = point.index;
  evidence_ = outputs_->evidence(point);
  RecentTurns recent = recent_turns(*layout_, point.clock);
  evidence_.first_turn = recent.first;
  evidence_.turns = std::move(recent.turns);
  const ReplicaId asks = view_owner(view);
  if (value(asks) == config_.replica) {
    on_note(asks, proxy::bytes_of(digest));
  } else {
    (void)consensus_->send_note(asks, proxy::bytes_of(digest));  // lost: unknown
  }
}

void Node::on_note(ReplicaId from, std::span<const std::byte> note) {
  if (hear_refusal(note)) return;
  proxy::ProgressNote progress;
  if (note.size() == sizeof progress && proxy::read_body(note, progress)) {
    pacing_->heard(from, progress, now_ns_);
    return;
  }
  Digest digest;
  if (note.size() != sizeof digest || !proxy::read_body(note, digest)) return;
  if (!leadership_.leads() || View{digest.view} != leadership_.view() || digest.point.index != cut_)
    return;
  if (value(from) < digests_.size()) digests_[value(from)] = digest;
}

proxy::VerifyPolicy::Work Node::work_done() const noexcept {
  proxy::VerifyPolicy::Work done;
  done.bytes = outputs_->bytes();
  for (std::size_t type = 1; type < intake_->counts().size(); ++type) {
    const EntryOrigin origin = origin_of(static_cast<EntryType>(type));
    if (origin == EntryOrigin::kNodes) continue;
    done.entries += intake_->counts()[type];
    if (origin != EntryOrigin::kServer) done.inputs += intake_->counts()[type];
  }
  return done;
}

// A single replica has nobody to be compared with.
bool Node::checks() const {
  return leadership_.leads() && !end_.stopping() && !exit_.exited() && proxy_->leading() &&
         config_.replicas > 1;
}

bool Node::all_digests_there() const {
  for (const consensus::MemberStatus& m : consensus_->members()) {
    const bool self = value(m.id) == config_.replica;
    if (m.role != consensus::MemberRole::kVoter || (!self && !m.connected)) continue;
    if (value(m.id) >= digests_.size() || !digests_[value(m.id)]) return false;
  }
  return true;
}

void Node::propose_hash() {
  if (!checks() || leadership_.busy()) return;
  const auto done = work_done();
  if (verify_.look_again_ns(now_ns_, done) == proxy::kNever) return;
  if (!verify_.due(now_ns_, done, !verify_.waiting() || all_digests_there())) return;
  HashBody body;
  body.cut = verify_.cuts(done);
  for (const consensus::MemberStatus& m : consensus_->members()) {
    // Who does not vote does not count (V3).
    if (m.role != consensus::MemberRole::kVoter && value(m.id) < digests_.size()) {
      digests_[value(m.id)].reset();
    }
  }
  if (verify_.waiting()) body.digests = digests_;
  const proxy::Judgement judged = proxy::judge(digests_, voters());
  const bool differ = judged.verdict == Verdict::kDifferent;
  // Whose digest is missing may make a majority at the next cut.
  body.anew = verify_.waiting() && differ && !judged.majority && all_digests_there();
  if (differ && evidence_cut_ == cut_) body.evidence = evidence_;
  const auto payload = proxy::encode(body);
  const Result<Index> index = propose(EntryType::kHash, grants_->input_grant(), payload);
  if (!index.ok()) return;
  verify_.proposed(now_ns_, done, body.cut);
  cut_ = body.cut ? value(index.value()) : 0;
  digests_.assign(body.cut ? config_.replicas : 0, std::nullopt);
}

// The first differences from what replica `other`, the leader, did; empty: there is nothing to
// tell.
std::string Node::differences(const HashBody& body, ReplicaId other, std::uint64_t index) const {
  if (!body.evidence || evidence_cut_ != index || value(other) == config_.replica) return "";
  if (proxy::same_digest(body.digests, config_.replica, value(other))) return "";
  const std::string where = proxy::difference(evidence_, *body.evidence);
  const std::string start = where.empty() ? "" : "; different: " + where;
  const proxy::FirstTurn turn = proxy::first_turn(evidence_, *body.evidence);
  switch (turn.answer) {
    case proxy::FirstTurn::Answer::kNone:
      return start + "; no turn is different";
    case proxy::FirstTurn::Answer::kUnknown:
      return start + "; first different turn: unknown, " + turn.why;
    case proxy::FirstTurn::Answer::kFound:
      break;
  }
  proxy::TurnNames names;
  names.set_operations({layout_->operation_names, sizeof layout_->operation_names});
  names.set_maps(server_maps());
  const auto text = [&](const std::optional<TurnRecord>& t) {
    return t ? names.text(*t) : std::string("none, the entry was admitted before");
  };
  return start + fmt::format("; first different turn: {}, {} here, {} on replica {}", turn.number,
                             text(turn.own), text(turn.theirs), value(other));
}

// Beside the log, as far as it is still known: crane-diff --schedule compares replicas' files.
std::string Node::keep_evidence() {
  const std::string dir = fmt::format("{}/diverged-{}", config_.replica_dir(), evidence_cut_);
  auto file = proxy::ScheduleRecorder::open(dir, config_.replica);
  if (!file.ok()) return "";
  proxy::ScheduleRecorder& kept = *file.value();
  if (evidence_.base.index != 0) kept.admitted(evidence_.base);
  for (const proxy::SchedulePoint& p : evidence_.points) kept.admitted(p);
  kept.turns(evidence_.first_turn, std::as_bytes(std::span(evidence_.turns)));
  kept.names({layout_->operation_names, sizeof layout_->operation_names});
  kept.maps(server_maps());
  kept.finish();
  return kept.recording() ? dir : "";
}

// The log behind a checkpoint tells of this replica's earlier life: what counts is what it has made
// of the same entries now.
void Node::replace_own_digest(proxy::Digests& digests) const {
  if (config_.replica >= digests.size()) return;
  std::optional<Digest>& own = digests[config_.replica];
  if (!own) return;
  if (own_digest_ && own_digest_->point.index == own->point.index) {
    own->point = own_digest_->point;
    own->outputs = own_digest_->outputs;
  } else if (own->point.index <= value(restored_.at.index)) {
    own.reset();
  }
}

std::size_t Node::voters() const {
  std::size_t voters = 0;
  for (const consensus::MemberStatus& m : consensus_->members()) {
    if (m.role == consensus::MemberRole::kVoter) ++voters;
  }
  return std::max<std::size_t>(voters, 1);
}

namespace {

std::string accusation(const proxy::Judgement& j, const std::string& who) {
  if (j.majority) return who + " diverged from the majority";
  if (who.empty()) return "the replicas differ, none has a majority";
  return fmt::format("{} diverged from the majority in its {} (no majority is equal in everything)",
                     who, j.settled);
}

std::string wall_clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

void Node::judge_digests(HashBody body, ReplicaId proposer) {
  if (!restored_from_.empty()) replace_own_digest(body.digests);
  const proxy::Judgement j = proxy::judge(body.digests, voters());
  const bool again = verdict_ == Verdict::kDifferent;
  verdict_ = j.verdict;
  const std::uint64_t from = std::max(alarms_.verified(), alarms_.anew_from());
  const Finding own =
      config_.replica < j.replicas.size() ? j.replicas[config_.replica] : Finding::kUnknown;
  if (own == Finding::kAgrees) {
    alarms_.agreed(j.index);
    verified_ns_ = now_ns_;
    if (evidence_cut_ == j.index) outputs_->verified(evidence_);
  }
  if (j.verdict != Verdict::kDifferent) return;
  std::string who;
  for (std::size_t i = 0; i < j.replicas.size(); ++i) {
    if (j.replicas[i] != Finding::kMinority) continue;
    who += (who.empty() ? "replica " : ", ") + std::to_string(i);
  }
  const bool first = alarms_.none();
  const std::string alarm = fmt::format("{} between log index {} and {}{}", accusation(j, who),
                                        from, j.index, differences(body, proposer, j.index));
  alarms_.raised(alarm, j.index, wall_clock_text());
  // One that goes on is said once; the status counts.
  if (!again || own == Finding::kMinority) spdlog::error("{}", alarm);
  if (first && evidence_cut_ == j.index) {
    if (const std::string dir = keep_evidence(); !dir.empty()) {
      spdlog::info("the last turns are in {}: crane-diff --schedule, with those of others", dir);
    }
  }
  if (own == Finding::kMinority) {
    distrust_checkpoints();
    fail(ExitStatus::kDiverged, alarm +
                                    "; this replica is fenced, start the group again; "
                                    "crane-run --record DIR --trace keeps every turn");
  }
}

// Where the schedule stands at the end, if nobody runs: what followed the last admission is then
// compared, too.
std::optional<proxy::SchedulePoint> Node::rest_point() {
  drain();
  const dmt::SchedulerState& s = layout_->scheduler;
  if (s.holder.load(std::memory_order_acquire) != dmt::kHolderIdle) return std::nullopt;
  const proxy::SchedulePoint rest{value(applied()), s.clock, s.hash};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (s.holder.load(std::memory_order_relaxed) != dmt::kHolderIdle) return std::nullopt;
  return rest;
}

void Node::note_rest() {
  if (slot0_ == nullptr || outputs_ == nullptr || !end_.in_order()) return;
  const auto rest = rest_point();
  if (!rest) return;
  outputs_->at_rest(*rest);
  if (layout_->header.configuration.trace == 0) return;
  const dmt::SchedulerState& s = layout_->scheduler;
  const std::uint64_t first = (s.clock + 1) / dmt::kTurnsPerRecord * dmt::kTurnsPerRecord;
  outputs_->turns(first, std::as_bytes(std::span(&layout_->turns[first % dmt::kTurnHistory],
                                                 s.clock + 1 - first)));
  outputs_->names({layout_->operation_names, sizeof layout_->operation_names}, server_maps());
}

std::string Node::server_maps() const {
  std::ifstream maps("/proc/" + std::to_string(guard_->pid()) + "/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

}  // namespace crane::node
