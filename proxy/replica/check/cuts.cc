// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/check/cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dmt/sequence/entry.h"

namespace crane::replica {

using namespace cuts;
using proxy::Digest;
using proxy::Finding;
using proxy::HashBody;
using proxy::Verdict;

namespace {

std::string accusation(const proxy::Evaluation& j, const std::string& names) {
  if (j.majority) return names + " diverged from the majority";
  if (names.empty()) return "the replicas differ, none has a majority";
  return fmt::format("{} diverged from the majority in its {} (no majority is equal in everything)",
                     names, j.settled);
}

std::string minority(const proxy::Evaluation& j) {
  std::string names;
  for (std::size_t i = 0; i < j.replicas.size(); ++i) {
    if (j.replicas[i] != Finding::kMinority) continue;
    names += (names.empty() ? "replica " : ", ") + std::to_string(i);
  }
  return names;
}

bool all_agree(const proxy::Evaluation& j, std::size_t voters) {
  const auto count = [&j](Finding f) {
    return static_cast<std::size_t>(std::count(j.replicas.begin(), j.replicas.end(), f));
  };
  return j.majority && count(Finding::kMinority) == 0 && count(Finding::kAgrees) >= voters;
}

// The log index of the cut at which the digests were taken; 0: there are none.
std::uint64_t cut_of(const proxy::Digests& digests) {
  const auto any = std::find_if(digests.begin(), digests.end(), [](const auto& d) { return d; });
  return any == digests.end() ? 0 : (*any)->point.index;
}

}  // namespace

std::size_t voters_of(std::span<const consensus::MemberStatus> members) {
  const auto voters = std::count_if(members.begin(), members.end(), [](const auto& m) {
    return m.role == consensus::MemberRole::kVoter;
  });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(voters, 1));
}

void Cuts::step(const Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::visit([this](const auto& e) { on(e); }, event);
}

bool Cuts::take_actions(ActionList& out) {
  out.clear();
  std::swap(out, actions_);
  return !out.empty();
}

void Cuts::on(const Restored& restored) {
  began_at_ = restored.at;
  alarms_.restore(restored.verified, restored.restarted_from);
}

// --- the leader --------------------------------------------------------------------------------

void Cuts::on(const BecameLeader&) {
  policy_.lead();
  digests_.clear();
}

void Cuts::on(const PeerDigest& peer) {
  const bool of_view = peer.reign.leads && View{peer.digest.view} == peer.reign.view;
  if (!of_view || peer.digest.point.index != cut_) return;  // CHECK-2
  if (value(peer.from) < digests_.size()) digests_[value(peer.from)] = peer.digest;
}

proxy::VerifyPolicy::Work Cuts::work_done(const Tick& tick) const noexcept {
  proxy::VerifyPolicy::Work done;
  done.bytes = tick.output_bytes;
  for (std::size_t type = 1; type < tick.entries.size(); ++type) {
    const EntryOrigin origin = origin_of(static_cast<EntryType>(type));
    if (origin == EntryOrigin::kNodes) continue;
    done.entries += tick.entries[type];
    if (origin != EntryOrigin::kServer) done.inputs += tick.entries[type];
  }
  return done;
}

void Cuts::on(const Tick& tick) {
  due_ns_ = kNever;
  if (!tick.serves || options_.replicas <= 1) return;
  done_ = work_done(tick);
  due_ns_ = policy_.look_again_ns(now_ns_, done_);
  if (due_ns_ == kNever || tick.busy || !policy_.due(now_ns_, done_, true)) return;
  looks_ = true;
  actions_.emplace_back(LookAtMembers{});
}

void Cuts::on(const Members& group) {
  if (!std::exchange(looks_, false)) return;
  const bool complete = !policy_.waiting() || all_digests_there(group.members);
  if (policy_.due(now_ns_, done_, complete)) propose(group.members);
}

bool Cuts::all_digests_there(std::span<const consensus::MemberStatus> members) const {
  return std::all_of(members.begin(), members.end(), [this](const consensus::MemberStatus& m) {
    const bool there = m.id == options_.self || m.connected;
    if (m.role != consensus::MemberRole::kVoter || !there) return true;
    return value(m.id) < digests_.size() && digests_[value(m.id)].has_value();
  });
}

void Cuts::propose(std::span<const consensus::MemberStatus> members) {
  HashBody body;
  body.cut = policy_.cuts(done_);
  for (const consensus::MemberStatus& m : members) {
    // A replica that does not vote does not count (LIVE-V3).
    if (m.role != consensus::MemberRole::kVoter && value(m.id) < digests_.size()) {
      digests_[value(m.id)].reset();
    }
  }
  body.digests = digests_;
  const proxy::Evaluation evaluation = proxy::evaluate(digests_, voters_of(members));
  const bool differ = evaluation.verdict == Verdict::kDifferent;
  // If a digest is missing, that replica may make a majority at the next cut.
  body.restarts = differ && !evaluation.majority && all_digests_there(members);
  actions_.emplace_back(Propose{std::move(body), differ && evidence_cut_ == cut_});
}

void Cuts::on(const Proposed& proposed) {
  if (!proposed.ok) return;
  policy_.proposed(now_ns_, done_, proposed.cut);
  cut_ = proposed.cut ? value(proposed.index) : 0;
  digests_.assign(proposed.cut ? options_.replicas : 0, std::nullopt);
  due_ns_ = policy_.look_again_ns(now_ns_, done_);
}

// --- every replica -----------------------------------------------------------------------------

void Cuts::on(const Admitted& entry) {
  if (!awaits(entry.here.index)) return;  // CHECK-1
  Committed hash = std::move(hashes_.front());
  hashes_.pop_front();
  if (own_digest_) actions_.emplace_back(Compared{*own_digest_, hash.body.digests});
  if (options_.evaluates && !hash.body.digests.empty()) {
    evaluate(hash.body, view_owner(hash.at.view), entry.voters);
  }
  if (hash.body.restarts) {
    actions_.emplace_back(StartAgain{entry.here});
    alarms_.restart_from(entry.here.index);
    evidence_cut_ = 0;
  }
  if (hash.body.cut && entry.accepts_digests) {
    actions_.emplace_back(TakeDigest{hash.at.view, entry.here});
  }
}

void Cuts::on(const Taken& taken) {
  own_digest_ = taken.digest;
  evidence_cut_ = taken.digest.point.index;
  const ReplicaId asks = view_owner(View{taken.digest.view});
  if (asks == options_.self) return on(PeerDigest{asks, taken.digest, taken.reign});
  actions_.emplace_back(SendDigest{asks, taken.digest});
}

// A replica runs the entries that it missed from the log, whose digests of this replica were made
// by its previous process, or are missing.  What counts is what it has made of these entries now.
void Cuts::replace_own_digest(proxy::Digests& digests) const {
  if (value(options_.self) >= digests.size()) return;
  std::optional<Digest>& own = digests[value(options_.self)];
  if (own_digest_ && own_digest_->point.index == cut_of(digests)) {
    own = own_digest_;
  } else if (own && own->point.index <= value(began_at_)) {
    own.reset();
  }
}

void Cuts::evaluate(HashBody& body, ReplicaId proposer, std::size_t voters) {
  replace_own_digest(body.digests);
  const proxy::Evaluation j = proxy::evaluate(body.digests, voters);
  const bool again = verdict_ == Verdict::kDifferent;
  verdict_ = j.verdict;
  const std::size_t self = value(options_.self);
  const std::uint64_t from = std::max(alarms_.verified(), alarms_.restarted_from());
  if (self < j.replicas.size() && j.replicas[self] == Finding::kAgrees) {
    verified_ns_ = now_ns_;
    alarms_.agreed(j.index);
    if (all_agree(j, voters)) alarms_.all_agreed();
    if (evidence_cut_ == j.index) actions_.emplace_back(Verified{});
  }
  if (j.verdict != Verdict::kDifferent) return;
  Raise raise;
  raise.what =
      fmt::format("{} between log index {} and {}", accusation(j, minority(j)), from, j.index);
  raise.at = Index{j.index};
  raise.leader = proposer;
  const bool own = evidence_cut_ == j.index;
  if (own && !proxy::same_digest(body.digests, self, value(proposer))) {
    raise.theirs = std::move(body.evidence);
  }
  raise.accused = self < j.replicas.size() && j.replicas[self] == Finding::kMinority;
  // A lasting difference is logged once; the status counts it.
  raise.must_log = !again || raise.accused;
  raise.keeps_evidence = own && alarms_.none();
  actions_.emplace_back(std::move(raise));
}

void Cuts::on(const Raised& raised) {
  alarms_.raised(raised.alarm, value(raised.at), raised.when);
  if (raised.accused) actions_.emplace_back(Diverged{raised.alarm, raised.at});
}

}  // namespace crane::replica
