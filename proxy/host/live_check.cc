// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/live_check.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "proxy/clients/encode.h"
#include "proxy/clients/grants.h"
#include "proxy/host/turns.h"
#include "proxy/record/first_turn.h"
#include "proxy/record/schedule_record.h"
#include "proxy/record/turn_names.h"

namespace crane::node {

using proxy::Digest;
using proxy::Finding;
using proxy::HashBody;
using proxy::Verdict;

namespace {

std::string accusation(const proxy::Judgement& j, const std::string& who) {
  if (j.majority) return who + " diverged from the majority";
  if (who.empty()) return "the replicas differ, none has a majority";
  return fmt::format("{} diverged from the majority in its {} (no majority is equal in everything)",
                     who, j.settled);
}

std::string minority(const proxy::Judgement& j) {
  std::string who;
  for (std::size_t i = 0; i < j.replicas.size(); ++i) {
    if (j.replicas[i] != Finding::kMinority) continue;
    who += (who.empty() ? "replica " : ", ") + std::to_string(i);
  }
  return who;
}

// The log index of the cut at which they were taken; 0: there are none.
std::uint64_t cut_of(const proxy::Digests& digests) {
  const auto any = std::find_if(digests.begin(), digests.end(), [](const auto& d) { return d; });
  return any == digests.end() ? 0 : (*any)->point.index;
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

LiveCheck::LiveCheck(const Config& config, const dmt::Layout& layout, Outputs& outputs,
                     const Leadership& leadership, bool judges, LiveCheckActions actions)
    : config_(config),
      layout_(layout),
      outputs_(outputs),
      leadership_(leadership),
      judges_(judges),
      actions_(std::move(actions)) {}

void LiveCheck::restore(Index at, std::uint64_t verified, std::uint64_t restarted_from) noexcept {
  began_at_ = at;
  alarms_.restore(verified, restarted_from);
}

void LiveCheck::committed(const consensus::EntryView& entry) {
  CommittedHash hash{entry.at, {}};
  if (proxy::decode(entry.payload, hash.body)) hashes_.push_back(std::move(hash));
}

void LiveCheck::admitted(const OutputHeader& header, bool takes_digests, std::int64_t now_ns) {
  if (hashes_.empty() || value(hashes_.front().at.index) != header.conn) return;  // CHECK-1
  const CommittedHash hash = std::move(hashes_.front());
  hashes_.pop_front();
  if (own_digest_) actions_.compared(*own_digest_, hash.body.digests);
  if (judges_ && !hash.body.digests.empty()) {
    judge(hash.body, view_owner(hash.at.view), now_ns);
  }
  const proxy::SchedulePoint here{header.conn, header.clock, header.argument};
  if (hash.body.restarts) {
    outputs_.begin_anew(here);
    alarms_.begin_anew(here.index);
    evidence_cut_ = 0;
  }
  if (hash.body.cut && takes_digests) take_digest(hash.at.view, here);
}

void LiveCheck::take_digest(View view, const proxy::SchedulePoint& point) {
  const Digest digest{value(view), point, outputs_.digest()};
  own_digest_ = digest;
  evidence_cut_ = point.index;
  evidence_ = outputs_.evidence(point);
  RecentTurns recent = recent_turns(layout_, point.clock);
  evidence_.first_turn = recent.first;
  evidence_.turns = std::move(recent.turns);
  const ReplicaId asks = view_owner(view);
  if (value(asks) == config_.replica) {
    heard(asks, digest);
  } else {
    actions_.send(asks, digest);  // lost: the replica counts as unknown
  }
}

// --- the leader's -------------------------------------------------------------------------------

void LiveCheck::lead() {
  policy_.lead();
  digests_.clear();
}

void LiveCheck::heard(ReplicaId from, const Digest& digest) {
  const bool of_view = leadership_.leads() && View{digest.view} == leadership_.view();
  if (!of_view || digest.point.index != cut_) return;  // CHECK-2
  if (value(from) < digests_.size()) digests_[value(from)] = digest;
}

proxy::VerifyPolicy::Work LiveCheck::work_done(const EntryCounts& entries) const noexcept {
  proxy::VerifyPolicy::Work done;
  done.bytes = outputs_.bytes();
  for (std::size_t type = 1; type < entries.size(); ++type) {
    const EntryOrigin origin = origin_of(static_cast<EntryType>(type));
    if (origin == EntryOrigin::kNodes) continue;
    done.entries += entries[type];
    if (origin != EntryOrigin::kServer) done.inputs += entries[type];
  }
  return done;
}

bool LiveCheck::all_digests_there() const {
  for (const consensus::MemberStatus& m : actions_.members()) {
    const bool self = value(m.id) == config_.replica;
    if (m.role != consensus::MemberRole::kVoter || (!self && !m.connected)) continue;
    if (value(m.id) >= digests_.size() || !digests_[value(m.id)]) return false;
  }
  return true;
}

std::size_t LiveCheck::voters() const {
  const auto members = actions_.members();
  const auto voters = std::count_if(members.begin(), members.end(), [](const auto& m) {
    return m.role == consensus::MemberRole::kVoter;
  });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(voters, 1));
}

std::int64_t LiveCheck::step(const Seen& seen, std::int64_t now_ns) {
  if (!checks(seen)) return proxy::kNever;
  const auto done = work_done(seen.entries);
  const std::int64_t look_ns = policy_.look_again_ns(now_ns, done);
  if (look_ns == proxy::kNever || leadership_.busy()) return look_ns;
  if (!policy_.due(now_ns, done, !policy_.waiting() || all_digests_there())) return look_ns;
  propose(done, now_ns);
  return policy_.look_again_ns(now_ns, done);
}

void LiveCheck::propose(const proxy::VerifyPolicy::Work& done, std::int64_t now_ns) {
  const HashBody body = next_hash(done);
  const auto payload = proxy::encode(body);
  const Result<Index> index = actions_.propose(payload);
  if (!index.ok()) return;
  policy_.proposed(now_ns, done, body.cut);
  cut_ = body.cut ? value(index.value()) : 0;
  digests_.assign(body.cut ? config_.replicas : 0, std::nullopt);
}

HashBody LiveCheck::next_hash(const proxy::VerifyPolicy::Work& done) {
  HashBody body;
  body.cut = policy_.cuts(done);
  for (const consensus::MemberStatus& m : actions_.members()) {
    // A replica that does not vote does not count (LIVE-V3).
    if (m.role != consensus::MemberRole::kVoter && value(m.id) < digests_.size()) {
      digests_[value(m.id)].reset();
    }
  }
  if (policy_.waiting()) body.digests = digests_;
  const proxy::Judgement judged = proxy::judge(digests_, voters());
  const bool differ = judged.verdict == Verdict::kDifferent;
  // A replica whose digest is missing may make a majority at the next cut.
  body.restarts = policy_.waiting() && differ && !judged.majority && all_digests_there();
  if (differ && evidence_cut_ == cut_) body.evidence = evidence_;
  return body;
}

// --- every replica's ----------------------------------------------------------------------------

// The first differences from what replica `other`, the leader, did; empty: there is nothing to
// tell.
std::string LiveCheck::differences(const HashBody& body, ReplicaId other,
                                   std::uint64_t index) const {
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
  names.set_operations(operation_names());
  names.set_maps(actions_.maps());
  const auto text = [&](const std::optional<TurnRecord>& t) {
    return t ? names.text(*t) : std::string("none, the entry was admitted before");
  };
  return start + fmt::format("; first different turn: {}, {} here, {} on replica {}", turn.number,
                             text(turn.own), text(turn.theirs), value(other));
}

// Beside the log, as far as it is still known: crane-diff --schedule compares replicas' files.
std::string LiveCheck::keep_evidence() const {
  const std::string dir = fmt::format("{}/diverged-{}", config_.replica_dir(), evidence_cut_);
  auto file = proxy::ScheduleRecorder::open(dir, config_.replica);
  if (!file.ok()) return "";
  proxy::ScheduleRecorder& kept = *file.value();
  if (evidence_.base.index != 0) kept.admitted(evidence_.base);
  for (const proxy::SchedulePoint& p : evidence_.points) kept.admitted(p);
  kept.turns(evidence_.first_turn, std::as_bytes(std::span(evidence_.turns)));
  kept.names(operation_names());
  kept.maps(actions_.maps());
  kept.finish();
  return kept.recording() ? dir : "";
}

// What a replica missed it runs from the log, which tells of its earlier life, or that it was away:
// what counts is what it has made of the same entries now.
void LiveCheck::replace_own_digest(proxy::Digests& digests) const {
  if (config_.replica >= digests.size()) return;
  std::optional<Digest>& own = digests[config_.replica];
  if (own_digest_ && own_digest_->point.index == cut_of(digests)) {
    own = own_digest_;
  } else if (own && own->point.index <= value(began_at_)) {
    own.reset();
  }
}

void LiveCheck::judge(HashBody body, ReplicaId proposer, std::int64_t now_ns) {
  replace_own_digest(body.digests);
  const proxy::Judgement j = proxy::judge(body.digests, voters());
  const bool again = verdict_ == Verdict::kDifferent;
  verdict_ = j.verdict;
  const bool agrees =
      config_.replica < j.replicas.size() && j.replicas[config_.replica] == Finding::kAgrees;
  if (agrees) verified_ns_ = now_ns;
  const std::uint64_t from = std::max(alarms_.verified(), alarms_.restarted_from());
  if (agrees) alarms_.agreed(j.index);
  if (agrees && evidence_cut_ == j.index) outputs_.verified(evidence_);
  if (j.verdict == Verdict::kDifferent) raise(j, body, proposer, from, again);
}

// `from`: equal up to there.  `again`: the judgement before was the same.
void LiveCheck::raise(const proxy::Judgement& j, const HashBody& body, ReplicaId proposer,
                      std::uint64_t from, bool again) {
  const bool first = alarms_.none();
  const bool accused =
      config_.replica < j.replicas.size() && j.replicas[config_.replica] == Finding::kMinority;
  const std::string alarm =
      fmt::format("{} between log index {} and {}{}", accusation(j, minority(j)), from, j.index,
                  differences(body, proposer, j.index));
  alarms_.raised(alarm, j.index, wall_clock_text());
  // One that goes on is said once; the status counts.
  if (!again || accused) spdlog::error("{}", alarm);
  if (first && evidence_cut_ == j.index) {
    if (const std::string dir = keep_evidence(); !dir.empty()) {
      spdlog::info("the last turns are in {}: crane-diff --schedule, with those of others", dir);
    }
  }
  if (accused) actions_.diverged(alarm, Index{j.index});
}

std::string_view LiveCheck::operation_names() const noexcept {
  return {layout_.operation_names, sizeof layout_.operation_names};
}

}  // namespace crane::node
