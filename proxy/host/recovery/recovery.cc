// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/recovery.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/fault_points.h"
#include "dmt/base/assert.h"
#include "proxy/clients/encode.h"
#include "proxy/clients/flow_control.h"
#include "proxy/clients/grants.h"
#include "proxy/host/consensus_options.h"
#include "proxy/host/control.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/pacing.h"
#include "proxy/record/verification.h"
#include "proxy/replica/role/lead_watch.h"

namespace crane::node {
namespace {

// A replica without a server looks so often for a checkpoint that it did not hear of.
constexpr std::int64_t kFirstLookNs = 500'000'000;
// After so long one that could not be used is tried again.
constexpr std::int64_t kUnusableNs = 30'000'000'000;
// A server that is so far behind is waited for with no checkpoint.
constexpr std::int64_t kStandsMs = 2'000;

}  // namespace

Recovery::Recovery(event_base* base, const Config& config, const Leadership& leadership,
                   const Agreed& agreed, bool member, RecoveryActions actions)
    : base_(base),
      config_(config),
      leadership_(leadership),
      agreed_(agreed),
      member_(member),
      actions_(std::move(actions)),
      start_(config, agreed, member),
      start_check_(agreed),
      tier_(config, leadership,
            {[this](ReplicaId to, const replica::RefusalMessage& note) {
               if (group_ != nullptr) (void)send(*group_, to, note);
             },
             actions_.refusal_changed}),
      missing_(config),
      log_keeper_(keeps_whole_log(config) ? member_options(config).ring_bytes : 0),
      dump_due_ns_(proxy::kNever),
      due_ns_(proxy::kNever) {}

// --- setting up ---------------------------------------------------------------------------------

Outcome Recovery::begin() {
  packer_ = std::make_unique<CheckpointPacker>(
      base_, config_, agreed_,
      PackerActions{actions_.on_event,
                    [this](checkpoint::Tier tier, Index at, const std::string& why_not) {
                      packed(tier, at, why_not);
                    }});
  open_requests();
  if (!config_.restore && !config_.on_disk()) return Done{};
  auto found = start_.find();
  if (start_.state().handed_over) start_check_.begin_behind_hand_over();
  return found;
}

void Recovery::open_requests() {
  CheckpointRequestActions actions;
  actions.members = [this] { return group_->members(); };
  actions.lag_ns = actions_.lag_ns;
  actions.waits_behind = [this](ReplicaId who) { return waits_behind(who); };
  actions.propose = [this](std::span<const std::byte> body) {
    return actions_.propose(EntryType::kCheckpoint, 0, body);
  };
  actions.restart = [this] { return restart_->ask(); };
  const std::string wanted_not = RecoveryTier::why_no_checkpoints(config_);
  requests_ = std::make_unique<CheckpointRequests>(config_, wanted_not, std::move(actions));
  const bool wanted = config_.checkpoint_every_s != 0 || config_.checkpoint_log_mb != 0;
  if (wanted && !wanted_not.empty()) spdlog::warn("no checkpoints are taken: {}", wanted_not);
  if (config_.container && !wanted_not.empty()) tier_.dump_ended(false, wanted_not);
}

void Recovery::open(ServerParts parts) {
  parts_.emplace(std::move(parts));
  if (!start_.state().command.empty()) parts_->monitor.set_command(start_.state().command);
  dump_ = std::make_unique<ServerDump>(*parts_, *packer_);
  restart_ = std::make_unique<ServerRestart>(*parts_, *packer_, *dump_, actions_, start_.upper(),
                                             start_.carried());
  if (ships(config_)) open_shipping();
}

void Recovery::open_shipping() {
  ShippingHooks hooks;
  hooks.awake = actions_.on_event;
  hooks.knows = [this](ReplicaId who) { return knows(who); };
  hooks.lacked = [this](ReplicaId who, Index behind) {
    if (serves_) requests_->help(who, behind, monotonic_ns());
  };
  shipping_ = std::make_unique<Shipping>(base_, config_, std::move(hooks));
}

// Its first life, and one that was invited only, may begin as a new replica.
bool Recovery::knows(ReplicaId who) const {
  constexpr std::uint32_t kFirstLife = 1;
  const auto members = group_->members();
  return std::any_of(members.begin(), members.end(), [&](const consensus::MemberStatus& m) {
    return m.id == who && (m.incarnation > kFirstLife || value(m.last) > 0);
  });
}

void Recovery::opened(consensus::Consensus& group) {
  group_ = &group;
  const Index last = group_->status().last;
  log_end_ = last;
  if (acceptor_only_) {
    spdlog::warn(
        "the log of this replica begins behind {}, so that no server can begin here: it votes, "
        "and restarts at the first checkpoint behind entry {}",
        start_.at_checkpoint() ? "the newest checkpoint" : "its first entry", value(last));
    began_ns_ = monotonic_ns();
    group_->keep_log(nullptr);  // the next life keeps it
    return group_->lags(ProgressReporter::kRecoversLagNs, Index{});
  }
  if (config_.restore || value(last) > 0) meter_.recovers(start_.state().at.index);
  const bool has_log = config_.on_disk() && value(last) > 0;
  if (has_log && !start_.at_checkpoint()) start_.replays_log();
  if (start_.at_checkpoint() || start_.runs_all_again() || has_log) {
    catch_up_.begin(last, monotonic_ns());
    group_->lags(ProgressReporter::kRecoversLagNs, start_.state().at.index);
  }
  log_keeper_.begin({start_.state().at, start_.state().position});
  if (start_.at_checkpoint()) {
    CheckpointNote note;
    note.came = CheckpointNote::kTaken;
    note.index = value(start_.state().at.index);
    note.end = start_.state().position;
    requests_->heard(note, monotonic_ns());
  }
  if (!config_.on_disk()) return;
  packer_->find_own();
}

// --- the log ------------------------------------------------------------------------------------

bool Recovery::holds_log() const noexcept { return dump_->holds_log() || restart_->holds_log(); }

void Recovery::before_server(const consensus::EntryView& entry) {
  if (static_cast<EntryType>(entry.type) == EntryType::kRestart) restart_->committed(entry);
}

void Recovery::after_server(const consensus::EntryView& entry, std::int64_t now_ns) {
  if (static_cast<EntryType>(entry.type) != EntryType::kCheckpoint || !member_) return;
  CheckpointBody body;
  if (!proxy::read_body(entry.payload, body) || body.replica != config_.replica) return;
  const Index at = entry.at.index;
  // One that ended the life before would end this one.
  if (at <= catch_up_.missed() || leadership_.role() == consensus::Role::kLearner) {
    return dump_->refuse(at, "this replica recovered after it was asked");
  }
  if (restart_->busy() || !packer_->idle()) {  // RECOVERY-1
    return dump_->refuse_for_now(at);
  }
  dump_->asked(now_ns, at);
}

void Recovery::passed_over(const consensus::EntryView& entry, std::int64_t now_ns) {
  CheckpointBody body;
  if (static_cast<EntryType>(entry.type) != EntryType::kCheckpoint ||
      !proxy::read_body(entry.payload, body) || body.replica != config_.replica) {
    return;
  }
  CheckpointNote note;  // the leader did not know yet that there is no server here
  note.came = CheckpointNote::kGivenUp;
  note.index = value(entry.at.index);
  announce(note, now_ns);
}

void Recovery::heard(ReplicaId from, const replica::CommittedMessage& message) {
  if (message.answers != 0) return catch_up_.heard(message);
  if (!leadership_.leads()) return;
  replica::CommittedMessage answer = message;
  answer.answers = 1;
  answer.committed = value(group_->status().committed);
  (void)send(*group_, from, answer);
}

void Recovery::visited(ReplicaId from, std::unique_ptr<consensus::SecureLink> link) {
  if (shipping_ != nullptr) shipping_->take_visitor(from, std::move(link));
}

// --- the server ---------------------------------------------------------------------------------

Outcome Recovery::start_server() {
  ServerMonitor& monitor = parts_->monitor;
  const std::string& upper = restart_->upper();
  Outcome begun = start_.at_checkpoint() && upper.empty()
                      ? monitor.restore(start_.directory())
                      : monitor.start(upper.empty() ? config_.base : upper);
  if (start_.at_checkpoint()) checkpoint::fault_point("return.asked");
  return begun;
}

Result<bool> Recovery::server_started(std::string& why) {
  // One that does not begin at checkpoints would run the same again, and again.
  if (member_ && catch_up_.active() && !config_.skip_checkpoints) {
    overtaking_.begin(parts_->applied(), start_.since_begin_ns(), monotonic_ns());
  }
  if (!start_.resumes()) return false;
  const Outcome resumed = start_.resume(parts_->layout, parts_->monitor, why);
  if (!resumed.ok()) return resumed.error();
  return start_.revives();
}

void Recovery::dump_prepared(std::int64_t now_ns) {
  dump_->prepared();
  step_dump(now_ns);
}

void Recovery::dump_ended(const std::string& why_not, const std::string& refusal) {
  tier_.dump_ended(why_not.empty(), refusal);
  dump_->dumped(why_not);
}

void Recovery::packed(checkpoint::Tier tier, Index at, const std::string& why_not) {
  if (tier == checkpoint::Tier::kCriu) return dump_->packed(why_not);
  restart_->packed(at, why_not);
}

// --- the loop -----------------------------------------------------------------------------------

void Recovery::step(const Seen& seen, std::int64_t now_ns) {
  serves_ = seen.serves;
  if (dump_->holds_log()) step_dump(now_ns);
  step_restart(seen, now_ns);
  watch_run_time(now_ns);
  announce_checkpoints(now_ns);
  if (seen.serves) {
    requests_->step(now_ns, parts_->intake.end(), parts_->intake.inputs_of_clients(),
                    group_->low_on_room(), log_keeper_.full());
  }
  if (acceptor_only_ && !seen.stopping) {
    look_for_first(now_ns);
  } else if (!leadership_.leads() && !seen.stopping) {
    look_for_newer(now_ns);
  }
  rely_on_checkpoints();
  if (!acceptor_only_) keep_log(now_ns);
  if (shipping_ != nullptr) shipping_->step();
}

void Recovery::step_dump(std::int64_t now_ns) {
  const bool leads_others = leadership_.role() != consensus::Role::kFollower && !requests_->alone();
  dump_due_ns_ = dump_->step(now_ns, leads_others);
}

void Recovery::step_restart(const Seen& seen, std::int64_t now_ns) {
  if (restart_->under_way()) dump_->server_ends(now_ns);
  replica::change::Tick s;
  s.serves = seen.serves;
  s.may_lead = seen.admitted && !seen.stopping;
  s.done = seen.done;
  s.publishes = packer_->idle() && dump_->idle();
  s.member = member_ && leadership_.role() != consensus::Role::kLearner;
  s.missed = catch_up_.missed();
  s.refused = !tier_.refusal().empty();
  due_ns_ = std::min(restart_->step(s, now_ns), dump_due_ns_);
  if (acceptor_only_ && !seen.stopping) due_ns_ = std::min(due_ns_, first_look_ns_);
}

void Recovery::watch_run_time(std::int64_t now_ns) {
  if (!member_ || !run_time_.is_due(now_ns)) return;
  requests_->ran(parts_->intake.end(), run_time_.look(parts_->monitor.processes()));
  hurry_packing();
}

// A lost replica waits for the checkpoint, or the log must not grow much further.
void Recovery::hurry_packing() {
  if (!packer_->packs()) return;
  const auto members = group_->members();
  const bool lost = std::any_of(members.begin(), members.end(), [this](const auto& m) {
    return m.role == consensus::MemberRole::kVoter && (!m.connected || !has_server(m.id));
  });
  if (lost || requests_->is_urgent(parts_->intake.end())) packer_->hurry();
}

void Recovery::announce_checkpoints(std::int64_t now_ns) {
  const replica::CheckpointStatus& status = dump_->status();
  CheckpointNote note;
  if (std::exchange(failed_, status.failed) != status.failed) {
    note.came = status.busy               ? CheckpointNote::kBusy
                : tier_.refusal().empty() ? CheckpointNote::kGivenUp
                                          : CheckpointNote::kRefused;
    note.index = value(status.gave_up);
    announce(note, now_ns);
  }
  if (std::exchange(taken_, status.taken) != status.taken) {
    note.came = CheckpointNote::kTaken;
    note.index = value(status.last);
    note.end = packer_->end();
    note.by_criu = packer_->tier() == checkpoint::Tier::kCriu ? 1 : 0;
    announce(note, now_ns);
  }
}

void Recovery::announce(const CheckpointNote& note, std::int64_t now_ns) {
  for (const consensus::MemberStatus& m : group_->members()) {
    if (value(m.id) != config_.replica) (void)send(*group_, m.id, note);
  }
  heard(note, now_ns);
}

void Recovery::heard(const CheckpointNote& note, std::int64_t now_ns) {
  requests_->heard(note, now_ns);
  if (note.came == CheckpointNote::kTaken) {
    overtaking_.heard(Index{note.index});
    first_look_ns_ = now_ns;
    log_keeper_.heard();
    tier_.taken(note, requests_->wanted_not().empty());
  } else if (note.came != CheckpointNote::kBusy) {
    ++given_up_;
  }
}

std::vector<VoterSeen> Recovery::voters_seen() const {
  std::vector<VoterSeen> voters;
  for (const consensus::MemberStatus& m : group_->members()) {
    if (m.role != consensus::MemberRole::kVoter) continue;
    voters.push_back({m.id, m.connected, waits_behind(m.id)});
  }
  return voters;
}

// What this replica lacks has left the others' logs, or a newer checkpoint overtakes it.
void Recovery::look_for_newer(std::int64_t now_ns) {
  if (!missing_.is_due(now_ns)) return;
  if (group_->status().needs_checkpoint) {
    const Index last = std::max(parts_->intake.last(), start_.state().at.index);
    const auto why = missing_.step(last, shipping_.get(), now_ns);
    if (why) actions_.failed(ExitStatus::kTooFarBehind, *why);
    return;
  }
  if (!overtaking_.active()) return;
  replica::Overtaking::Seen seen;
  seen.applied = parts_->applied();
  seen.caught_up = !catch_up_.active() && seen.applied >= parts_->intake.last_for_server();
  seen.spared = others_suffice(voters_seen(), ReplicaId{config_.replica});
  seen.now_ns = now_ns;
  const auto least = overtaking_.step(seen);  // OVERTAKE-1
  if (!least) return;
  const auto why = missing_.overtaken(seen.applied, *least, shipping_.get(), now_ns);
  if (why) actions_.failed(ExitStatus::kTooFarBehind, *why);
}

std::optional<Index> Recovery::waits_behind(ReplicaId who) const {
  if (value(who) == config_.replica) {
    return acceptor_only_ ? std::optional(log_end_) : std::nullopt;
  }
  const auto told = actions_.told(who);
  return told && told->acceptor_only ? std::optional(Index{told->progress.of}) : std::nullopt;
}

bool Recovery::has_server(ReplicaId who) const { return !waits_behind(who); }

std::string Recovery::why_no_server() const {
  if (start_.unusable().empty()) return "";
  return fmt::format("the checkpoint at entry {} cannot be used, as node.log says",
                     value(start_.unusable().front()));
}

// A checkpoint that a server can begin at here: one behind all that the log held; where no other
// has a server either, one inside the log as well.  What could not be used is tried again later, as
// the disk may have been full.
void Recovery::look_for_first(std::int64_t now_ns) {
  if (now_ns < first_look_ns_) return;
  first_look_ns_ = now_ns + kFirstLookNs;
  const ReplicaId self{config_.replica};
  const std::vector<VoterSeen> voters = voters_seen();
  const Index last = none_has_server(voters, self) ? start_.state().at.index : log_end_;
  const bool again = now_ns - began_ns_ >= kUnusableNs;
  const auto unusable = again ? std::span<const Index>() : start_.unusable();
  const auto at = missing_.newer(last, unusable, shipping_.get(), now_ns);
  if (!at) {
    known_ns_ = 0;
    return begin_at_distrusted(voters);
  }
  if (known_ns_ == 0) known_ns_ = now_ns;
  if (!may_restart(voters, self, *at, now_ns - known_ns_)) return;
  actions_.failed(ExitStatus::kTooFarBehind,
                  fmt::format("this replica has no server yet; it restarts at a checkpoint, which "
                              "is at entry {}",
                              value(*at)));
}

// START-3: no replica has a server, and none can take a checkpoint.
void Recovery::begin_at_distrusted(std::span<const VoterSeen> voters) {
  const bool lost = std::all_of(voters.begin(), voters.end(), [this](const VoterSeen& v) {
    return value(v.id) == config_.replica || v.waits_behind;
  });
  if (!lost || !start_.left_one_out()) return;
  start_.log_gone();
  actions_.failed(ExitStatus::kTooFarBehind,
                  "no replica has a server, and the log reaches back to no checkpoint but one "
                  "behind which replicas differed; this one restarts there");
}

// All is equal up to here, as far as this replica knows.
Index Recovery::trusted() const {
  const std::uint64_t equal = parts_->live_check.alarms().unbroken();
  return Index{config_.replicas > 1 ? equal : std::numeric_limits<std::uint64_t>::max()};
}

// Of those that a checkpoint can be asked of: they are stopped, or starved.
bool Recovery::followers_stand() const {
  const auto members = group_->members();
  return std::all_of(members.begin(), members.end(), [this](const consensus::MemberStatus& m) {
    if (m.role != consensus::MemberRole::kVoter || !m.connected) return true;
    const auto told = actions_.told(m.id);
    if (m.id == leadership_.leader() || !told) return m.id == leadership_.leader();
    return told->acceptor_only || (!told->recovers && !told->held && told->lag_ms >= kStandsMs);
  });
}

void Recovery::keep_log(std::int64_t now_ns) {
  replica::LogKeeper::Seen seen;
  seen.log_end = parts_->intake.end();
  seen.refused = !tier_.refusal().empty();
  seen.stand = log_keeper_.full() && followers_stand();
  seen.given_up = given_up_;
  seen.compared = trusted();
  seen.looked = log_keeper_.looks(seen.log_end, now_ns);
  if (seen.looked) {
    const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
    if (const checkpoint::Listed* one = newest_.look(config_.dir, digest)) {
      seen.newest = {{one->manifest.at, one->manifest.cursor}, one->distrusted};
    }
  }
  const replica::LogKeeper::Actions actions = log_keeper_.step(seen);
  if (actions.keep) group_->keep_log(&*actions.keep);
  if (actions.gives_up) {
    spdlog::warn(
        "the log since the newest checkpoint is not kept whole any more, because {}: until the "
        "next checkpoint a replica that is lost depends on the others",
        seen.refused ? tier_.refusal()
        : seen.stand ? "no follower's server runs on, so none can be dumped"
                     : "no newer checkpoint came");
    group_->keep_log(nullptr);
  }
}

// A checkpoint that this replica might have to distrust later is none to rely on: consensus hears
// of it once the replica was compared with the others behind it.
void Recovery::rely_on_checkpoints() {
  const auto relied = packer_->take_relied(trusted());
  if (!relied) return;
  checkpoint::fault_point("truncate.holds");
  group_->checkpointed(*relied);
  checkpoint::fault_point("truncate.told");
}

void Recovery::step_catch_up(std::int64_t behind_ns, std::int64_t now_ns) {
  if (!catch_up_.active()) return;
  replica::CatchUp::Seen seen;
  seen.leads = leadership_.leads();
  seen.follows = leadership_.view() != View{0} &&
                 leadership_.role() == consensus::Role::kFollower &&
                 value(leadership_.leader()) < config_.replicas;
  seen.applied = applied();
  seen.committed = group_->status().committed;
  seen.behind_ns = behind_ns;
  if (const auto question = catch_up_.question(seen.follows, now_ns)) {
    (void)send(*group_, leadership_.leader(), *question);
  }
  if (!catch_up_.step(seen, now_ns)) return;
  spdlog::info("caught up at entry {}", value(seen.applied));
  actions_.caught_up();
}

// As far as the server has come; what stands before consensus' own entries was run: so were these.
Index Recovery::applied() const {
  const Index applied = parts_->applied();
  const bool all = applied >= parts_->intake.last_for_server();
  return all ? std::max(applied, parts_->intake.last()) : applied;
}

void Recovery::step_meter(std::int64_t now_ns) {
  if (!meter_.recovering()) return;
  const Index target =
      std::max({log_end_, group_->status().committed, catch_up_.group(), parts_->intake.last()});
  const bool ran = applied() >= target && !catch_up_.active();
  meter_.step(applied(), target, ran || leadership_.admitted(applied()), now_ns);
}

// --- operators ----------------------------------------------------------------------------------

std::string Recovery::ask(const nlohmann::json& request) {
  return requests_->ask(request, leadership_.started());
}

// Whether entries 1, 2, .. can still be had.
bool Recovery::reaches_beginning() const {
  if (config_.on_disk()) return value(group_->status().first) <= 1;
  return parts_->intake.end() <= ring_of(config_);
}

std::string Recovery::upgrade(const nlohmann::json& request) {
  if (!dump_->idle()) return refused("busy", "a checkpoint is being taken");
  if (request.value("do", "") == "hand_over") return restart_->ask_hand_over(request);
  return restart_->ask_upgrade(request);
}

void Recovery::describe(NodeStatus& status) {
  status.upgrade = restart_->upgrade();
  status.command = parts_->monitor.command();
  status.checkpoint = dump_->status();
  status.dump = dump_->last_times();
  status.returned = start_.times();
  status.recovery = tier_.status(reaches_beginning(), start_.recovered_by());
  status.recovery.catches_up = catches_up();
  status.no_checkpoints = requests_->wanted_not();
  status.restored_at = value(start_.state().at.index);
}

void Recovery::distrust(std::uint64_t verified, Index at) {
  stop();
  start_.differed(at);
  packer_->distrust(verified);
}

void Recovery::stop() {
  if (packer_ != nullptr) packer_->stop();
  if (shipping_ != nullptr) shipping_->stop();
  if (dump_ != nullptr) dump_->discard();
}

}  // namespace crane::node
