// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace crane::replica {
namespace {

// No checkpoint is expected from a server that is this late.
constexpr std::int64_t kStalledMs = 2'000;

}  // namespace

Recovery::Recovery(Rules rules)
    : rules_(std::move(rules)),
      checkpointer_(mutant()),
      requests_(rules_.requests),
      missing_(self(), mutant()),
      keeper_(rules_.ring_bytes, mutant()),
      catch_up_(mutant()) {
  const CheckpointRequests::Rules& r = rules_.requests;
  if (r.wanted && !r.why_not_wanted.empty()) {
    out_.push_back(LogMessage{Level::kWarning, "no checkpoints are taken: " + r.why_not_wanted});
  }
  if (rules_.needs_dumps && !r.why_not_wanted.empty()) tier_.cannot_dump(r.why_not_wanted, out_);
}

void Recovery::step(const Event& event, const Facts& facts) {
  std::visit([&](const auto& e) { on(e, facts); }, event);
}

std::int64_t Recovery::due_ns() const noexcept {
  if (!acceptor_only_) return std::min(checkpointer_.due_ns(), wish_.due_ns());
  return stopping_ ? kNever : missing_.first_due_ns();
}

// --- the beginning ------------------------------------------------------------------------------

void Recovery::on(const Opened& event, const Facts& facts) {
  log_end_ = event.last;
  begins_ = event.begins.at.index;
  missing_.begin(log_end_, begins_, facts.now_ns);
  if (event.acceptor_only) return begin_without_server(event);
  begin_to_catch_up(event, facts);
  keeper_.begin(event.begins);
  if (!event.at_checkpoint) return;
  CheckpointNote note;
  note.state = CheckpointNote::kTaken;
  note.index = value(begins_);
  note.end = event.begins.pos;
  requests_.on_report(note, facts.now_ns);
}

void Recovery::begin_without_server(const Opened& event) {
  acceptor_only_ = true;
  out_.push_back(LogMessage{
      Level::kWarning,
      fmt::format("the log of this replica begins after {}, so no server can begin on it: it "
                  "votes, and restarts at the first checkpoint after entry {}",
                  event.at_checkpoint ? "the newest checkpoint" : "its first entry",
                  value(log_end_))});
  out_.push_back(KeepLog{});  // the next process keeps it
  out_.push_back(ReportLag{kRecoversLagNs, Index{}});
}

void Recovery::begin_to_catch_up(const Opened& event, const Facts& facts) {
  if (event.restores || value(log_end_) > 0) meter_.recovers(begins_);
  const bool has_log = rules_.on_disk && value(log_end_) > 0 && mutant() != Mutant::kStoreIsReady;
  const bool runs_all_again = event.restores && !event.at_checkpoint;
  if (!event.at_checkpoint && !runs_all_again && !has_log) return;
  catch_up_.begin(log_end_, facts.now_ns);
  out_.push_back(ReportLag{kRecoversLagNs, begins_});
}

// A replica that does not begin at checkpoints would run the same entries again and again.
void Recovery::on(const ServerRuns& event, const Facts& facts) {
  server_runs_ = true;
  if (!rules_.member || !catch_up_.active() || rules_.skips_checkpoints) return;
  missing_.server_runs(facts.applied, event.took_ns, facts.now_ns);
}

// --- this replica's checkpoint
// -------------------------------------------------------------------------

void Recovery::on(const CheckpointCommitted& event, const Facts& facts) {
  if (!rules_.member || event.taker != self()) return;
  wish_.granted(event.at);
  if (acceptor_only_) {  // the leader did not know yet that this replica has no server
    CheckpointNote note;
    note.state = CheckpointNote::kGivenUp;
    note.index = value(event.at);
    return announce(note, facts);
  }
  // The entry that ended the previous process would end this one, too.
  if (event.at <= catch_up_.missed() || !consensus::votes(facts.role)) {
    return checkpointer_.refuse(event.at, "this replica recovered after the request", out_);
  }
  if (facts.restarts || facts.packs) return checkpointer_.refuse_for_now(event.at, out_);
  checkpointer_.asked(facts.now_ns, event.at, out_);
}

void Recovery::on(const Prepared& event, const Facts& facts) {
  checkpointer_.prepared(facts.now_ns, event.place);
  checkpointer_.step(leads_others(facts), out_);
}

// The clients of the other replicas would wait for the dump.
bool Recovery::leads_others(const Facts& facts) const {
  return facts.role != consensus::Role::kFollower && !requests_.alone(facts);
}

void Recovery::on(const Looked& event, const Facts& facts) {
  checkpointer_.looked(facts.now_ns, event, out_);
}

void Recovery::on(const Slid& event, const Facts&) { checkpointer_.slid(event.at); }

void Recovery::on(const Dumped& event, const Facts& facts) {
  tier_.dump_ended(event.by_criu, event.refusal, facts, out_);
  checkpointer_.dumped(facts.now_ns, event.why_not, out_);
}

void Recovery::on(const Packed& event, const Facts& facts) {
  packed_end_ = event.end;
  packed_by_criu_ = event.by_criu;
  if (event.by_criu) return checkpointer_.published(facts.now_ns, event.why_not, out_);
  if (event.why_not.empty()) {
    checkpointer_.restarted(event.at, event.pack_ns, out_);
  } else {
    checkpointer_.refuse(event.at, event.why_not, out_);
  }
}

void Recovery::on(const NotAdmitted& event, const Facts&) {
  checkpointer_.refuse(event.at, event.why, out_);
}

void Recovery::on(const ServerEnds&, const Facts&) { checkpointer_.server_ends(out_); }

void Recovery::announce_checkpoints(const Facts& facts) {
  const CheckpointStatus& status = checkpointer_.status();
  CheckpointNote note;
  if (std::exchange(failed_, status.failed) != status.failed) {
    note.state = status.busy               ? CheckpointNote::kBusy
                 : tier_.refusal().empty() ? CheckpointNote::kGivenUp
                                           : CheckpointNote::kRefused;
    note.index = value(status.gave_up);
    announce(note, facts);
  }
  if (std::exchange(announced_, status.taken) != status.taken) {
    note.state = CheckpointNote::kTaken;
    note.index = value(status.last);
    note.end = packed_end_;
    note.by_criu = packed_by_criu_ ? 1 : 0;
    announce(note, facts);
  }
}

void Recovery::announce(const CheckpointNote& note, const Facts& facts) {
  for (const MemberView& m : facts.members) {
    if (m.id != self()) out_.push_back(SendNote{m.id, note});
  }
  receive_note(note, facts.now_ns);
}

// A lost replica waits for the checkpoint, or the log must not grow much further.
void Recovery::hurry_packing(const Facts& facts) {
  if (!facts.packs) return;
  const bool lost = std::any_of(
      facts.members.begin(), facts.members.end(),
      [](const MemberView& m) { return m.votes() && (!m.connected || m.only_votes()); });
  if (lost || requests_.is_urgent(facts.log_end)) out_.push_back(HurryPacking{});
}

// --- reports
// ------------------------------------------------------------------------------

void Recovery::on(const PeerCommitted& event, const Facts& facts) {
  if (event.message.answers != 0) return catch_up_.on_report(event.message);
  if (!facts.leads) return;
  CommittedMessage answer = event.message;
  answer.answers = 1;
  answer.committed = value(facts.committed);
  out_.push_back(SendNote{event.from, answer});
}

void Recovery::on(const PeerCheckpoint& event, const Facts& facts) {
  receive_note(event.note, facts.now_ns);
}

void Recovery::receive_note(const CheckpointNote& note, std::int64_t now_ns) {
  requests_.on_report(note, now_ns);
  if (note.state == CheckpointNote::kTaken) {
    missing_.on_report(Index{note.index}, now_ns);
    keeper_.on_report();
    const bool able = requests_.why_not_wanted().empty() && mutant() != Mutant::kKeepRefusal;
    tier_.taken(note, able, out_);
  } else if (note.state != CheckpointNote::kBusy) {
    ++given_up_;
  }
}

void Recovery::on(const PeerRefusal& event, const Facts& facts) {
  tier_.on_report(event.note, facts.leads, out_);
}

void Recovery::on(const ServerRan& event, const Facts& facts) {
  if (!rules_.member) return;
  requests_.ran(facts.log_end, event.run_ns);
  hurry_packing(facts);
}

// --- requests -----------------------------------------------------------------------------------

void Recovery::on(const CheckpointRequested& event, const Facts& facts) {
  const bool led = facts.view != View{0} && value(facts.leader) < kReplicasMax;
  const bool passes_on =
      event.of == self() && !facts.leads && led && !acceptor_only_ && consensus::votes(facts.role);
  if (!passes_on) return requests_.ask(event.of, facts, out_);
  out_.push_back(SendNote{facts.leader, CheckpointWish{value(facts.committed)}});
  wish_.passed_on(facts.committed, facts.view, facts.now_ns);
  out_.push_back(Answer{nullptr,
                        fmt::format("replica {} requests a checkpoint of its server from the "
                                    "leader, replica {}",
                                    value(self()), value(facts.leader)),
                        self(), Index{value(facts.committed) + 1}});
}

// The leader has not answered the request that this replica passed on, or is another one (WISH-1).
void Recovery::step_wish(const Facts& facts) {
  const bool led = facts.view != View{0} && value(facts.leader) < kReplicasMax;
  switch (wish_.step(facts.view, led, facts.leads, facts.now_ns)) {
    case PassedOnWish::Next::kRepeat:
      out_.push_back(SendNote{facts.leader, CheckpointWish{value(wish_.after())}});
      break;
    case PassedOnWish::Next::kRefuse:
      // The number that the operator's answer had.
      checkpointer_.refuse(Index{value(wish_.after()) + 1},
                           "its leader was lost before it had requested the checkpoint, and now "
                           "this replica leads; name another one",
                           out_);
      break;
    case PassedOnWish::Next::kNothing:
      break;
  }
}

void Recovery::on(const PeerWish& event, const Facts& facts) {
  if (facts.leads) requests_.wish(event.from, Index{event.message.behind}, facts, out_);
}

void Recovery::on(const PeerWishRefused& event, const Facts&) {
  const WishRefusal& note = event.message;
  if (!wish_.refused(Index{note.behind})) return;
  checkpointer_.refuse(Index{note.behind + 1},  // the number that the operator's answer had
                       fmt::format("the leader, replica {}, refuses: {}", value(event.from),
                                   std::string_view(note.why, strnlen(note.why, sizeof note.why))),
                       out_);
}

void Recovery::on(const CheckpointSuggested&, const Facts& facts) { requests_.suggest(facts); }

void Recovery::on(const Lacked& event, const Facts& facts) {
  if (facts.serves) requests_.help(event.peer, event.behind, facts, out_);
}

void Recovery::on(const Proposed& event, const Facts& facts) {
  requests_.proposed(event, facts, out_);
}

// --- time ---------------------------------------------------------------------------------------

void Recovery::on(const Tick&, const Facts& facts) {
  stopping_ = facts.stopping;
  if (checkpointer_.holds()) checkpointer_.step(leads_others(facts), out_);
  announce_checkpoints(facts);
  step_wish(facts);
  if (facts.serves) requests_.step(keeper_.full(), facts, out_);
  if (!facts.stopping) {
    if (acceptor_only_) {
      missing_.step_first(facts, out_);
    } else if (!facts.leads) {
      missing_.step(!catch_up_.active(), facts, out_);
    }
  }
  if (!acceptor_only_) keep_log(nullptr, facts);
  step_meter(facts);
}

void Recovery::on(const Found& event, const Facts& facts) {
  if (event.purpose == Purpose::kKeep) return keep_log(&event, facts);
  missing_.found(event, facts, out_);
}

// Whether all servers that could take a checkpoint are stopped or starved.
bool Recovery::are_followers_stalled(const Facts& facts) const {
  return std::all_of(facts.members.begin(), facts.members.end(), [&](const MemberView& m) {
    if (!m.votes() || !m.connected || m.id == facts.leader) return true;
    if (!m.report) return false;
    const ServerReport& r = *m.report;
    return r.acceptor_only || (!r.recovers && !r.held && r.lag_ms >= kStalledMs);
  });
}

void Recovery::keep_log(const Found* found, const Facts& facts) {
  if (found == nullptr && keeper_.looks(facts.log_end, facts.now_ns)) {
    out_.push_back(FindCheckpoints{Purpose::kKeep});
    return;  // called again with the result
  }
  LogKeeper::Inputs seen;
  seen.log_end = facts.log_end;
  seen.refused = !tier_.refusal().empty();
  seen.followers_stalled = keeper_.full() && are_followers_stalled(facts);
  seen.given_up = given_up_;
  seen.compared = facts.trusted;
  seen.looked = found != nullptr;
  if (seen.looked && !found->checkpoints.empty()) {
    const CheckpointView& newest = found->checkpoints.front();
    seen.newest = {newest.at, newest.distrusted};
  }
  const LogKeeper::Next actions = keeper_.step(seen);
  if (actions.keep) out_.push_back(KeepLog{actions.keep});
  if (!actions.discards_log) return;
  out_.push_back(LogMessage{
      Level::kWarning,
      fmt::format("the log since the newest checkpoint is not kept whole any more, because {}: "
                  "until the next checkpoint a lost replica depends on the others",
                  seen.refused             ? tier_.refusal()
                  : seen.followers_stalled ? "no follower's server advances, so none can be dumped"
                                           : "no newer checkpoint was taken")});
  out_.push_back(KeepLog{});
}

// --- missed entries ----------------------------------------------------------------------------

void Recovery::on(const ServerBehind& event, const Facts& facts) {
  if (!catch_up_.active()) return;
  CatchUp::Inputs seen;
  const bool led = facts.view != View{0} && value(facts.leader) < kReplicasMax;
  seen.leads = facts.leads;
  // A replica that lost its memory returns as a learner, and has a leader as well.
  seen.follows =
      led && (facts.role == consensus::Role::kFollower || facts.role == consensus::Role::kLearner);
  seen.applied = applied(facts);
  seen.committed = facts.committed;
  seen.behind_ns = event.behind_ns;
  if (const auto question = catch_up_.question(seen.follows, facts.now_ns)) {
    out_.push_back(SendNote{facts.leader, *question});
  }
  if (!server_runs_ || !catch_up_.step(seen, facts.now_ns)) return;
  out_.push_back(
      LogMessage{Level::kInfo, fmt::format("caught up at entry {}", value(seen.applied))});
  out_.push_back(ReportCaughtUp{});
}

// The last entry that the server has run.  If it has run the last one that is for it, it has also
// run the entries of consensus that follow.
Index Recovery::applied(const Facts& facts) const {
  return facts.applied >= facts.for_server ? std::max(facts.applied, facts.taken) : facts.applied;
}

void Recovery::step_meter(const Facts& facts) {
  if (!meter_.recovering()) return;
  const Index target = std::max({log_end_, facts.committed, catch_up_.group(), facts.taken});
  const bool ran = catch_up_.ended() || (applied(facts) >= target && !catch_up_.active());
  meter_.step(applied(facts), target, ran || facts.admitted, facts.now_ns);
}

}  // namespace crane::replica
