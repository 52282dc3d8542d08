// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/recovery/recovery.h"

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
#include "proxy/node/control.h"
#include "proxy/record/verification.h"

namespace crane::node {
namespace {

// Messages are told apart by their sizes.
static_assert(sizeof(CommittedMessage) != sizeof(proxy::ProgressMessage) &&
              sizeof(CommittedMessage) != sizeof(proxy::Digest) &&
              sizeof(CommittedMessage) <= consensus::kOutOfBandBytesMax);

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
            {[this](ReplicaId to, std::span<const std::byte> message) {
               if (group_ != nullptr) (void)group_->send_message(to, message);
             },
             actions_.refusal_changed}),
      missing_(config),
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
  actions.propose = [this](std::span<const std::byte> body) {
    return actions_.propose(EntryType::kCheckpoint, 0, body);
  };
  actions.restart = [this] { return restart_->ask(monotonic_ns()); };
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
  open_restart();
  if (ships(config_)) open_shipping();
}

void Recovery::open_restart() {
  ServerRestartActions actions;
  actions.propose = [this](GrantTurns grant, std::span<const std::byte> body) {
    return actions_.propose(EntryType::kRestart, grant, body);
  };
  actions.input_grant = actions_.input_grant;
  actions.put_out = actions_.put_out;
  actions.let_in = actions_.let_in;
  actions.release_log = [this] { dump_->release_log(); };
  actions.failed = actions_.failed;
  actions.refused = [this](Index at, const std::string& why) { dump_->refuse(at, why); };
  restart_ = std::make_unique<ServerRestart>(*parts_, *packer_, start_.upper(), start_.carried(),
                                             std::move(actions));
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
  if (start_.at_checkpoint() || start_.runs_all_again()) {
    catch_up_.begin(group_->status().last, config_.replicas > 1, monotonic_ns());
    if (catch_up_.active()) group_->abdicate("its server recovers");
  }
  if (!config_.on_disk()) return;
  if (!start_.at_checkpoint() && value(group_->status().last) > 0) start_.replays_log();
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

bool Recovery::heard(ReplicaId from, std::span<const std::byte> message) {
  CommittedMessage note;
  if (message.size() != sizeof note || !proxy::read_body(message, note)) {
    return tier_.heard(message);
  }
  if (note.answers != 0) {
    catch_up_.heard(note);
  } else if (leadership_.leads()) {
    note.answers = 1;
    note.committed = value(group_->status().committed);
    (void)group_->send_message(from, proxy::bytes_of(note));
  }
  return true;
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
  const std::int64_t took_ns = restart_->packed(monotonic_ns());
  if (why_not.empty()) {
    dump_->restarted(at, took_ns);
  } else {
    dump_->refuse(at, why_not);
  }
  restart_->end_handed_over(why_not);
}

// --- the loop -----------------------------------------------------------------------------------

void Recovery::step(const Seen& seen, std::int64_t now_ns) {
  serves_ = seen.serves;
  if (dump_->holds_log()) step_dump(now_ns);
  step_restart(seen, now_ns);
  if (seen.serves) {
    requests_->step(now_ns, parts_->intake.end(), parts_->intake.inputs_of_clients(),
                    group_->low_on_room());
  }
  if (!leadership_.leads() && !seen.stopping) look_for_newer(now_ns);
  rely_on_checkpoints();
  if (shipping_ != nullptr) shipping_->step();
}

void Recovery::step_dump(std::int64_t now_ns) {
  const bool leads_others = leadership_.role() != consensus::Role::kFollower && !requests_->alone();
  dump_due_ns_ = dump_->step(now_ns, leads_others);
}

void Recovery::step_restart(const Seen& seen, std::int64_t now_ns) {
  if (restart_->under_way()) dump_->server_ends(now_ns);
  ServerRestart::Seen s;
  s.serves = seen.serves;
  s.may_lead = seen.admitted && !seen.stopping;
  s.done = seen.done;
  s.publishes = packer_->idle() && dump_->idle();
  s.member = member_ && leadership_.role() != consensus::Role::kLearner;
  s.missed = catch_up_.missed();
  s.refusal = tier_.refusal();
  due_ns_ = std::min(restart_->step(s, now_ns), dump_due_ns_);
}

// What this replica lacks has left the others' logs.
void Recovery::look_for_newer(std::int64_t now_ns) {
  if (!missing_.is_due(now_ns) || !group_->status().needs_checkpoint) return;
  const Index last = std::max(parts_->intake.last(), start_.state().at.index);
  const auto why = missing_.step(last, shipping_.get(), now_ns);
  if (why) actions_.failed(ExitStatus::kTooFarBehind, *why);
}

// A checkpoint that this replica might have to distrust later is none to rely on: consensus hears
// of it once the replica was compared with the others behind it.
void Recovery::rely_on_checkpoints() {
  const std::uint64_t equal = parts_->live_check.alarms().unbroken();
  const Index trusted{config_.replicas > 1 ? equal : std::numeric_limits<std::uint64_t>::max()};
  const auto relied = packer_->take_relied(trusted);
  if (!relied) return;
  checkpoint::fault_point("truncate.holds");
  group_->checkpointed(*relied);
  checkpoint::fault_point("truncate.told");
}

void Recovery::step_catch_up(std::int64_t now_ns) {
  if (!catch_up_.active()) return;
  CatchUp::Seen seen;
  seen.leads = leadership_.leads();
  seen.follows = leadership_.view() != View{0} &&
                 leadership_.role() == consensus::Role::kFollower &&
                 value(leadership_.leader()) < config_.replicas;
  seen.applied = parts_->applied();
  // It has run what stands before consensus' own entries: it has run these.
  if (seen.applied >= parts_->intake.last_for_server()) {
    seen.applied = std::max(seen.applied, parts_->intake.last());
  }
  seen.committed = group_->status().committed;
  if (const auto question = catch_up_.question(seen.follows, now_ns)) {
    (void)group_->send_message(leadership_.leader(), proxy::bytes_of(*question));
  }
  const CatchUp::Outcome outcome = catch_up_.step(seen, now_ns);
  if (outcome == CatchUp::Outcome::kNothing) return;
  const bool there = outcome == CatchUp::Outcome::kCaughtUp;
  spdlog::info("{} at entry {}", there ? "caught up" : "still behind", value(seen.applied));
  if (there) actions_.caught_up();
  group_->fit();
}

// --- operators ----------------------------------------------------------------------------------

std::string Recovery::ask(const nlohmann::json& request) {
  return requests_->ask(request, leadership_.started());
}

// Whether entries 1, 2, .. can still be had.
bool Recovery::reaches_beginning() const {
  if (config_.on_disk()) return value(group_->status().first) <= 1;
  const std::uint64_t ring =
      config_.ring_bytes != 0 ? config_.ring_bytes : consensus::Options{}.ring_bytes;
  return parts_->intake.end() <= ring;
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

void Recovery::distrust(std::uint64_t verified) {
  stop();
  packer_->distrust(verified);
}

void Recovery::stop() {
  if (packer_ != nullptr) packer_->stop();
  if (shipping_ != nullptr) shipping_->stop();
  if (dump_ != nullptr) dump_->discard();
}

}  // namespace crane::node
