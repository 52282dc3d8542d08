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
#include "proxy/host/consensus_options.h"
#include "proxy/host/control.h"
#include "proxy/host/out_of_band.h"
#include "proxy/host/recovery/tier_status.h"
#include "proxy/record/verification.h"
#include "proxy/replica/role/successor.h"

namespace crane::node {
namespace {

// Maximum age of the view of the group in a round without an event.
constexpr std::int64_t kLookNs = 10'000'000;

replica::CheckpointSchedule::Limits limits_of(const Config& config) {
  replica::CheckpointSchedule::Limits limits;
  limits.every_ns = config.checkpoint_every_s * 1'000'000'000LL;
  limits.log_bytes = std::uint64_t{config.checkpoint_log_mb} << 20;
  if (config.replicas == 1) return limits;  // a checkpoint would pause its clients
  if (config.checkpoint_log_mb != 0) limits.replay_ns = replica::CheckpointSchedule::kReplayNs;
  if (!config.on_disk())
    limits.ring_bytes = member_options(config).ring_bytes;  // on disk the store has the rest
  return limits;
}

replica::Recovery::Rules rules_of(const Config& config, bool member) {
  replica::Recovery::Rules rules;
  rules.requests.self = ReplicaId{config.replica};
  rules.requests.limits = limits_of(config);
  rules.requests.wanted = config.checkpoint_every_s != 0 || config.checkpoint_log_mb != 0;
  rules.requests.why_not_wanted = why_no_checkpoints(config);
  rules.ring_bytes = keeps_whole_log(config) ? member_options(config).ring_bytes : 0;
  rules.member = member;
  rules.on_disk = config.on_disk();
  rules.skips_checkpoints = config.skip_checkpoints;
  rules.needs_dumps = config.container;
  return rules;
}

replica::ServerReport report_of(const control::Readiness& readiness) {
  replica::ServerReport r;
  r.acceptor_only = readiness.acceptor_only;
  r.waits_behind = Index{readiness.progress.of};
  r.lacks = readiness.needs_checkpoint;
  r.recovers = readiness.recovers;
  r.held = readiness.held;
  r.lag_ms = readiness.lag_ms;
  return r;
}

}  // namespace

Recovery::Recovery(event_base* base, const Config& config, const replica::Leadership& leadership,
                   const Agreed& agreed, bool member, RecoveryOwner& owner)
    : base_(base),
      config_(config),
      leadership_(leadership),
      agreed_(agreed),
      member_(member),
      owner_(owner),
      start_(config, agreed, member),
      start_check_(agreed),
      restart_due_ns_(replica::kNever),
      machine_(rules_of(config, member)) {}

// --- setting up ---------------------------------------------------------------------------------

Outcome Recovery::begin() {
  packer_ = std::make_unique<CheckpointPacker>(base_, config_, agreed_, *this);
  if (const std::string why = why_log_never_cut(config_); !why.empty()) {
    spdlog::warn(
        "the log in {} is never cut, because there are no checkpoints ({}): it grows until this "
        "file system is full, and each start runs all inputs again",
        config_.store_dir(), why);
  }
  if (!config_.restore && !config_.on_disk()) return Done{};
  auto found = start_.find();
  if (start_.state().handed_over) start_check_.begin_behind_hand_over();
  return found;
}

void Recovery::open(ServerParts parts) {
  parts_.emplace(std::move(parts));
  if (!start_.state().server.command.empty()) parts_->monitor.start_as(start_.state().server);
  dump_ = std::make_unique<ServerDump>(*parts_, *packer_);
  restart_ = std::make_unique<ServerRestart>(*parts_, *packer_, *dump_, *this, start_.upper(),
                                             start_.carried());
  if (ships(config_)) shipping_ = std::make_unique<Shipping>(base_, config_, *this);
}

// A replica in its first process, or one that was only invited, may begin as a new replica.
bool Recovery::knows(ReplicaId peer) const {
  constexpr std::uint32_t kFirstLife = 1;
  const auto members = group_->members();
  return std::any_of(members.begin(), members.end(), [&](const consensus::MemberStatus& m) {
    return m.id == peer && (m.incarnation > kFirstLife || value(m.last) > 0);
  });
}

void Recovery::opened(consensus::Consensus& group) {
  group_ = &group;
  const Index last = group_->status().last;
  if (!acceptor_only_ && config_.on_disk() && value(last) > 0 && !start_.at_checkpoint()) {
    start_.replays_log();
  }
  replica::Opened event;
  event.acceptor_only = acceptor_only_;
  event.last = last;
  event.begins = {start_.state().at, start_.state().position};
  event.at_checkpoint = start_.at_checkpoint();
  event.restores = config_.restore;
  events_.push_front(event);  // before the events of the log's entries
  step_all();
  if (config_.on_disk() && !acceptor_only_) packer_->find_own();
}

// --- the log ------------------------------------------------------------------------------------

void Recovery::before_server(const consensus::EntryView& entry) {
  if (static_cast<EntryType>(entry.type) == EntryType::kRestart) restart_->committed(entry);
}

void Recovery::after_server(const consensus::EntryView& entry) {
  CheckpointBody body;
  const bool asks = static_cast<EntryType>(entry.type) == EntryType::kCheckpoint &&
                    proxy::read_body(entry.payload, body) && body.replica == config_.replica;
  if (asks) feed(replica::CheckpointCommitted{entry.at.index, ReplicaId{config_.replica}});
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
  feed(replica::ServerRuns{start_.since_begin_ns()});
  if (!start_.resumes()) return false;
  const Outcome resumed = start_.resume(parts_->layout, parts_->monitor, why);
  if (!resumed.ok()) return resumed.error();
  return start_.restores_processes();
}

// The server got no entry since: the place is the last delivered entry.
void Recovery::dump_prepared() { feed(replica::Prepared{dump_->begin_place()}); }

void Recovery::dump_ended(const std::string& why_not, const std::string& refusal) {
  feed(replica::Dumped{dump_->dumped(why_not), refusal, why_not.empty()});
}

void Recovery::packed(checkpoint::Tier tier, Index at, const std::string& why_not) {
  if (tier != checkpoint::Tier::kCriu) return restart_->packed(at, why_not);
  dump_->packed(why_not);
  feed(replica::Packed{at, packer_->end(), true, 0, why_not});
}

// --- the loop -----------------------------------------------------------------------------------

void Recovery::step(const Inputs& seen, std::int64_t now_ns) {
  seen_ = seen;
  step_restart(seen, now_ns);
  if (member_ && run_time_.is_due(now_ns)) {
    feed(replica::ServerRan{run_time_.look(parts_->monitor.processes())});
  }
  tick(now_ns);
  rely_on_checkpoints();
  if (shipping_ != nullptr) shipping_->step();
}

void Recovery::step_restart(const Inputs& seen, std::int64_t now_ns) {
  if (restart_->under_way() && !machine_.idle()) feed(replica::ServerEnds{});
  replica::change::Tick s;
  s.serves = seen.serves;
  s.may_lead = seen.admitted && !seen.stopping;
  s.done = seen.done;
  s.publishes = packer_->idle() && machine_.idle();
  s.member = member_ && consensus::votes(leadership_.role());
  s.missed = machine_.missed();
  s.refused = !machine_.refusal().empty();
  restart_due_ns_ = restart_->step(s, now_ns);
}

void Recovery::step_catch_up(std::int64_t behind_ns) { feed(replica::ServerBehind{behind_ns}); }

// The last entry up to which all replicas are known to be equal.
Index Recovery::trusted() const {
  const std::uint64_t equal = parts_->live_check.alarms().unbroken();
  return Index{config_.replicas > 1 ? equal : std::numeric_limits<std::uint64_t>::max()};
}

// A checkpoint that this replica might have to distrust later is not relied on: it is reported to
// consensus once the replica was compared with the others after it.
void Recovery::rely_on_checkpoints() {
  const auto relied = packer_->take_relied(trusted());
  if (!relied) return;
  checkpoint::fault_point("truncate.holds");
  group_->checkpointed(*relied);
  checkpoint::fault_point("truncate.told");
}

bool Recovery::has_server(ReplicaId peer) const {
  if (value(peer) == config_.replica) return !acceptor_only_;
  const auto readiness = owner_.readiness_of(peer);
  return !readiness || !readiness->acceptor_only;
}

std::optional<ReplicaId> Recovery::successor() {
  look_at_group(stepped_ns_);
  return replica::best_successor(members_, ReplicaId{config_.replica});
}

std::string Recovery::why_no_server() const {
  if (start_.unusable().empty()) return "";
  return fmt::format("the checkpoint at entry {} cannot be used; see node.log",
                     value(start_.unusable().front()));
}

// --- the machine --------------------------------------------------------------------------------

// Events that come while actions are carried out wait for the last action (REPLICA-S1).  Events
// that come before the log is open wait until it is.
void Recovery::feed(replica::Event event) {
  events_.push_back(std::move(event));
  if (carrying_out_ || group_ == nullptr) return;
  step_all();
}

void Recovery::step_all() {
  carrying_out_ = true;
  while (!events_.empty()) {
    const replica::Event next = std::move(events_.front());
    events_.pop_front();
    step_machine(next, monotonic_ns(), 0);
  }
  carrying_out_ = false;
}

// Runs in each round; allocates nothing if there is nothing to do.
void Recovery::tick(std::int64_t now_ns) {
  if (carrying_out_ || group_ == nullptr) return;
  carrying_out_ = true;
  step_machine(replica::Tick{}, now_ns, kLookNs);
  step_all();
}

void Recovery::step_machine(const replica::Event& event, std::int64_t now_ns,
                            std::int64_t look_ns) {
  stepped_ns_ = std::max(stepped_ns_, now_ns);  // REPLICA-S4
  if (stepped_ns_ - last_look_ns_ >= look_ns) look_at_group(stepped_ns_);
  machine_.step(event, facts(stepped_ns_));
  carry_out_all();
}

void Recovery::carry_out_all() {
  for (auto list = machine_.take_actions(); !list.empty(); list = machine_.take_actions()) {
    for (const replica::Action& action : list) {
      std::visit([this](const auto& a) { carry_out(a); }, action);
    }
  }
}

void Recovery::look_at_group(std::int64_t now_ns) {
  last_look_ns_ = now_ns;
  const consensus::GroupStatus group = group_->status();
  committed_ = group.committed;
  needs_checkpoint_ = group.needs_checkpoint;
  members_.clear();
  for (const consensus::MemberStatus& m : group.members) {
    replica::MemberView seen{m.id, m.role, m.connected, m.streaming, m.needs_checkpoint, 0, {}};
    if (leadership_.leads()) seen.lag_ns = owner_.lag_ns(m.id);
    // This replica's own report costs more, and is needed only if the log is full.
    const bool looks = value(m.id) != config_.replica || machine_.log_is_full();
    if (const auto readiness = looks ? owner_.readiness_of(m.id) : std::nullopt) {
      seen.report = report_of(*readiness);
    }
    members_.push_back(seen);
  }
}

replica::Facts Recovery::facts(std::int64_t now_ns) const {
  replica::Facts f;
  f.now_ns = now_ns;
  f.role = leadership_.role();
  f.view = leadership_.view();
  f.leader = leadership_.leader();
  f.leads = leadership_.leads();
  f.started = leadership_.started();
  f.admitted = leadership_.admitted(parts_->applied());
  f.serves = seen_.serves;
  f.members = members_;
  f.committed = committed_;
  f.needs_checkpoint = needs_checkpoint_;
  f.low_on_room = group_->low_on_room();
  f.taken = parts_->intake.last();
  f.for_server = parts_->intake.last_for_server();
  f.log_end = parts_->intake.end();
  f.inputs = parts_->intake.inputs_of_clients();
  f.trusted = trusted();
  f.applied = parts_->applied();
  f.packs = !packer_->idle();
  f.restarts = restart_->busy();
  f.stopping = seen_.stopping;
  return f;
}

void Recovery::carry_out(const replica::LogMessage& action) {
  if (action.level == replica::Level::kWarning) return spdlog::warn("{}", action.text);
  spdlog::info("{}", action.text);
}

void Recovery::carry_out(const replica::SendNote& action) {
  std::visit([&](const auto& message) { (void)send(*group_, action.to, message); }, action.message);
}

void Recovery::carry_out(const replica::ProposeCheckpoint& action) {
  const CheckpointBody body{value(action.taker)};
  const Result<Index> at = owner_.propose(EntryType::kCheckpoint, 0, proxy::bytes_of(body));
  feed(at.ok() ? replica::Proposed{at.value(), ""}
               : replica::Proposed{Index{}, at.error().message()});
}

void Recovery::carry_out(const replica::Answer& action) {
  answer_ = action.refused != nullptr ? refused(action.refused, action.text)
                                      : nlohmann::json{{"ok", true},
                                                       {"replica", value(action.taker)},
                                                       {"index", value(action.at)},
                                                       {"message", action.text}}
                                            .dump();
}

void Recovery::carry_out(const replica::Restart& action) {
  owner_.fail(ExitStatus::kTooFarBehind, action.why);
}

void Recovery::carry_out(const replica::FindCheckpoints& action) {
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  replica::Found found;
  found.purpose = action.purpose;
  found.fetching = shipping_ != nullptr && shipping_->fetches();
  const auto add = [&](const checkpoint::Listed& one, int replica) {
    const checkpoint::Manifest& m = one.manifest;
    found.checkpoints.push_back({{m.at, m.cursor}, replica == config_.replica, one.distrusted});
  };
  if (action.purpose == replica::Purpose::kKeep) {  // reads only directories that have changed
    if (const auto* one = newest_.look(config_.dir, digest)) add(*one, -1);
    return feed(std::move(found));
  }
  for (const auto& [replica, one] : checkpoints_to_try(config_)) {
    if (one.belongs_to(digest)) add(one, replica);
  }
  found.unusable.assign(start_.unusable().begin(), start_.unusable().end());
  if (action.purpose == replica::Purpose::kFirst)
    found.distrusted_behind = start_.skipped_distrusted();
  feed(std::move(found));
}

void Recovery::carry_out(const replica::FetchCheckpoint& action) {
  if (shipping_ != nullptr) shipping_->fetch(action.behind, monotonic_ns());
}

void Recovery::carry_out(const replica::KeepLog& action) {
  group_->keep_log(action.from ? &*action.from : nullptr);
}

void Recovery::carry_out(const replica::HurryPacking&) {
  if (packer_->packs()) packer_->hurry();
}

void Recovery::carry_out(const replica::Prepare& action) {
  const Outcome begun = dump_->prepare(action.at);
  if (!begun.ok()) feed(replica::Dumped{begun.error().message(), "", false});
}

void Recovery::carry_out(const replica::Dump&) {
  const Outcome begun = dump_->dump();
  if (!begun.ok()) feed(replica::Dumped{begun.error().message(), "", false});
}

void Recovery::carry_out(const replica::Pack&) {
  const Outcome begun = dump_->pack();
  if (!begun.ok()) {
    feed(replica::Packed{Index{}, packer_->end(), true, 0, begun.error().message()});
  }
}

// --- operators ----------------------------------------------------------------------------------

std::string Recovery::ask(const control::Message& request) {
  if (request.text("tier") == "restart") {
    if (!leadership_.started()) return refused("not_leader", "this replica does not lead");
    return restart_->ask();
  }
  replica::CheckpointRequested event;
  if (request.has("replica")) event.of = ReplicaId{request.number<std::uint8_t>("replica")};
  feed(event);
  return std::exchange(answer_, "");
}

// Whether the log still has the entries from the first one on.
bool Recovery::reaches_beginning() const {
  if (config_.on_disk()) return value(group_->status().first) <= 1;
  return parts_->intake.end() <= member_options(config_).ring_bytes;
}

std::string Recovery::upgrade(const control::Message& request) {
  if (!machine_.idle()) return refused("busy", "a checkpoint is being taken");
  if (request.is("hand_over")) return restart_->ask_hand_over(request);
  return restart_->ask_upgrade(request);
}

void Recovery::describe(NodeStatus& status) {
  status.upgrade = restart_->upgrade();
  status.server = parts_->monitor.started_as();
  status.checkpoint = machine_.checkpoint();
  status.dump = dump_->last_times();
  status.returned = start_.times();
  status.recovery = tier_status(config_, machine_.refusal(), newest_, reaches_beginning());
  status.recovery.came_back_by = start_.recovered_by();
  status.recovery.catches_up = catches_up();
  if (shipping_ != nullptr) status.recovery.operations = shipping_->operations();
  if (packer_->packs()) status.recovery.operations.push_back(packer_->operation());
  status.no_checkpoints = machine_.why_not_wanted();
  status.restored_at = value(start_.state().at.index);
}

void Recovery::distrust(std::uint64_t verified, Index at) {
  stop();
  start_.differed(at);
  packer_->distrust(verified);
}

bool Recovery::server_failed(const std::string& why) {
  if (restart_->failed_to_start(why)) return true;
  if (start_.resumes()) blame_checkpoint();
  return false;
}

void Recovery::server_died() {
  if (start_.resumes() || catches_up()) blame_checkpoint();
}

// START-3.  While memory is short, servers fail at good checkpoints, too.
void Recovery::blame_checkpoint() {
  if (oom_kills_.since() == 0) start_.server_failed();
}

void Recovery::stop() {
  if (packer_ != nullptr) packer_->stop();
  if (shipping_ != nullptr) shipping_->stop();
  if (dump_ != nullptr) dump_->discard();
}

}  // namespace crane::node
