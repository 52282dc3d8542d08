// SPDX-License-Identifier: Apache-2.0
// The processes of a simulated group: cores, their actions, their applications.
#include "consensus/sim/cluster.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "dmt/base/overloaded.h"

namespace crane::consensus::sim {

Cluster::Cluster(std::uint64_t seed, const Faults& faults, const Options& options)
    : seed_(seed),
      faults_(faults),
      options_(options),
      world_(seed),
      keep_random_(seed ^ 0x4ee9'109c'0000'0008U),
      nodes_(faults.replicas),
      links_(std::size_t{faults.replicas} * faults.replicas),
      faults_end_ns_(faults.duration_ns),
      no_gap_(faults.replicas),
      kept_log_(faults.replicas),
      trace_(options.trace, options.all, faults.replicas) {
  outcome_.seed = seed;
  committed_config_.members = core::Members::first(faults.members);
  for (Node& n : nodes_) {
    n.memory.resize(core::log_memory_bytes(faults.ring_bytes));
    n.grants.resize(faults.replicas);
    n.offset_ns = world_.random.below(1'000'000'000);
    const auto skew = static_cast<std::int64_t>(faults.skew_ppm_max);
    n.skew_ppm = skew == 0 ? 0
                           : static_cast<std::int64_t>(
                                 world_.random.below(static_cast<std::uint64_t>(2 * skew + 1))) -
                                 skew;
  }
  if (options.application != nullptr) {
    application_ = options.application->make(*this, options.application_mutant);
  }
}

Outcome Cluster::run() {
  for (unsigned i = 0; i < faults_.replicas; ++i) start(i, core::StartKind::kNew);
  plan_incident();
  plan_change();
  plan_checkpoint();
  plan_keep();
  plan_outage();
  if (application_) application_->begin();
  if (!application_) world_.after(faults_.propose_every_ns, [this] { propose(); });
  world_.at(faults_end_ns_, [this] { faults_end(); });
  while (!ended_ && outcome_.ok() && world_.step()) {
  }
  if (!outcome_.ok()) show_state();
  if (application_) outcome_.application = application_->counts();
  outcome_.committed = agreement_.committed();
  outcome_.events = world_.steps();
  return outcome_;
}

void Cluster::start(unsigned id, core::StartKind kind, std::optional<core::Checkpoint> checkpoint) {
  Node& n = nodes_[id];
  core::Config c;
  c.self = id_of(id);
  c.replicas = faults_.replicas;
  c.members = core::Members::first(faults_.members);
  c.incarnation = n.incarnation;
  c.log_id = kLogId;
  c.ring_bytes = faults_.ring_bytes;
  c.payload_bytes_max = static_cast<std::uint32_t>(faults_.payload_max);
  c.write_bytes_max = faults_.write_bytes_max;
  c.in_flight_bytes_max = faults_.in_flight_bytes_max;
  c.period_active_ns = 5'000'000;
  c.period_idle_ns = 20'000'000;
  c.active_for_ns = 50'000'000;
  c.active_entries = 3;
  c.ask_timeout_ns = 20'000'000;
  c.retry_ns = 10'000'000;
  c.progress_timeout_ns = 100'000'000;
  c.test_only_mutant = options_.mutant;
  c.analysis = id == faults_.analysis_slot();
  c.keeps_log = keeps_log();
  if (faults_.disk) {
    c.durability = core::Durability::kDisk;
    c.store_bytes_max = 4096;
  }
  c.test_only_moves = &outcome_.moves;
  n.life = Life::kUp;
  ++n.process;
  n.core = std::make_unique<core::Replica>(c, n.memory);
  n.deferred.clear();
  n.answers.clear();
  n.pumping = n.leads = n.arrival_reported = false;
  n.tick_at_ns = 0;
  static constexpr const char* kKinds[] = {"new", "on surviving memory", "without its memory"};
  trace_line("replica %u starts, %s", id, kKinds[static_cast<int>(kind)]);
  core::Start event;
  event.kind = kind;
  event.promise = n.cells[core::kPromiseCell];
  if (checkpoint) {
    trace_line("the server of replica %u continues after entry %llu", id,
               ull(value(checkpoint->at.last.index)));
    no_gap_.on_restored(id, checkpoint->at.last.index);
    n.server_position = checkpoint->at;
    ++outcome_.restored;
    n.begins = checkpoint->at.last.index;
  }
  if (faults_.disk) begin_disk(id, event, checkpoint);
  event.checkpoint = checkpoint ? &*checkpoint : nullptr;
  n.packing = false;
  if (application_) application_->started(id);
  step(id, event);
  if (n.life == Life::kUp) report_held(id);
  const bool waits = n.core->role() == Role::kStarting;
  if (waits && faults_.bad_disk_weight > 0 && !faults_over_ && world_.random.chance(200)) {
    bad_disk(id, 10'000'000);
  }
}

std::uint64_t Cluster::local_time(unsigned id) const {
  const Node& n = nodes_[id];
  const auto t = static_cast<std::int64_t>(world_.now_ns());
  const std::int64_t local = t + t / 1'000'000 * n.skew_ppm;
  return static_cast<std::uint64_t>(local) + n.offset_ns;
}

core::Now Cluster::now_at(unsigned id) { return {local_time(id), world_.random.next()}; }

std::uint64_t Cluster::world_time(unsigned id, std::uint64_t local_ns) const {
  const Node& n = nodes_[id];
  const auto local = static_cast<double>(local_ns - std::min(local_ns, n.offset_ns));
  return static_cast<std::uint64_t>(local / (1.0 + static_cast<double>(n.skew_ppm) / 1e6));
}

void Cluster::step(unsigned id, const core::Event& event) {
  core::Replica& core = *nodes_[id].core;
  core.step(event, now_at(id));
  violate(in_sight_.on_step(id, event, core.role(), core.members()));
  pump(id);
}

void Cluster::pump(unsigned id) {
  Node& n = nodes_[id];
  if (n.pumping) return;
  n.pumping = true;
  core::ActionList list;
  list.swap(actions_);
  for (;;) {
    while (n.core->take_actions(list)) {
      for (const core::Action& a : list) carry_out(id, a);
    }
    deliver(id);
    if (n.answers.empty()) break;
    const core::Event event = n.answers.front();
    n.answers.pop_front();
    n.core->step(event, now_at(id));
  }
  // A hasty operator: START is not committed yet.
  const bool early = faults_.change_every_ns != 0 && !faults_over_ &&
                     n.core->role() == Role::kCandidate && world_.random.chance(300);
  if (early) change_by(id);
  if (world_.random.chance(800)) {
    n.core->step(core::Flush{}, now_at(id));
    while (n.core->take_actions(list)) {
      for (const core::Action& a : list) carry_out(id, a);
    }
  }
  list.swap(actions_);
  n.pumping = false;
  plan_tick(id);
}

void Cluster::plan_tick(unsigned id) {
  Node& n = nodes_[id];
  const std::uint64_t deadline = n.core->deadline_ns();
  if (deadline == ~std::uint64_t{0}) return;
  const std::uint64_t at = std::max(world_time(id, deadline), world_.now_ns() + 10'000);
  if (n.tick_at_ns > world_.now_ns() && n.tick_at_ns <= at) return;  // an earlier Tick is planned
  n.tick_at_ns = at;
  const std::uint32_t process = n.process;
  world_.at(at, [this, id, process, at] {
    if (nodes_[id].tick_at_ns != at) return;  // an earlier one was planned since
    nodes_[id].tick_at_ns = 0;
    for_process(id, process, [this, id] { tick(id); });
  });
}

// A Tick that was delayed meanwhile comes early, which is legal (consensus/core/step.h).  The
// driver waits for the later time, and so does the scene that tests this.
void Cluster::tick(unsigned id) {
  const bool early =
      faults_.scene == Scene::kAllUnfit && nodes_[id].core->deadline_ns() > local_time(id);
  return early ? plan_tick(id) : step(id, core::Tick{});
}

void Cluster::carry_out(unsigned id, const core::Action& action) {
  Node& n = nodes_[id];
  note(action.index(), id);
  const auto committed = [&] {
    if (beyond_) return;
    if (value(n.core->committed()) > committers_.size()) {
      committers_.resize(value(n.core->committed()), static_cast<std::uint8_t>(id));
    }
    violate(own_view_.on_committed(id, n.core->last_committed(), n.core->leading_view()));
  };
  std::visit(Overloaded{
                 [&](const core::WriteLog& a) { write_log(id, a); },
                 [&](const core::ReadLog& a) { read_log(id, a); },
                 [&](const core::ReadCell& a) { read_cell(id, a); },
                 [&](const core::SendMessage& a) {
                   if (a.message.type == core::MessageType::kRequest) {
                     violate(unique_views_.on_asked(id, n.process, n.incarnation, a.message.view));
                   }
                   send(id, a);
                 },
                 [&](const core::SetCell& a) { n.cells[a.cell] = a.value; },
                 [&](const core::CloseLog& a) {
                   Link& l = link(id, value(a.peer));
                   ++l.connection;
                   l.broken = false;
                 },
                 [&](const core::PermitWrites& a) { permit(id, value(a.peer)); },
                 [&](const core::RevokeWrites& a) { revoke(id, value(a.peer)); },
                 [&](const core::RoleChange& a) { on_role(id, a); },
                 [&](const core::Committed&) { committed(); },
                 [](const core::MembersChange&) {},  // the checkers read the core's members
                 [&](const core::Fatal& a) { on_fatal(id, a); },
                 [&](const core::StorePromise& a) {
                   submit(id, {a.view, {}, {}, {}, {}});
                 },
                 [&](const core::FetchEntries& a) {
                   ++outcome_.fetches;
                   submit(id, {View{0}, a, {}, {}, {}});
                 },
                 [&](const core::DropStored& a) {
                   ++outcome_.drops;
                   if (!beyond_) violate(covered_.on_dropped(id, a.upto));
                   submit(id, {View{0}, {}, {}, {}, a.upto});
                 },
                 [&](const core::StoreEntries& a) {
                   DiskJob job;
                   job.entries = a;
                   job.bytes.resize(a.to_pos - a.from_pos);
                   n.core->ring().copy_out(a.from_pos, job.bytes);
                   submit(id, std::move(job));
                 },
             },
             action);
}

void Cluster::on_fatal(unsigned id, const core::Fatal& fatal) {
  const Node& n = nodes_[id];
  fatal_seen_ = true;
  trace_line("replica %u FAILS: %s", id, fatal.why);
  if (n.core->checkpoint_too_old()) {
    if (keeps_log()) violate(kept_log_.on_refused(id, n.server_position.last.index));
    return on_refused(id);
  }
  if (!beyond_ && !n.disk_failed)
    violate("FATAL: replica " + std::to_string(id) + ": " + fatal.why);
}

void Cluster::on_role(unsigned id, const core::RoleChange& change) {
  Node& n = nodes_[id];
  trace_line("replica %u %s in view %llu.%u; its log ends at %llu of view %llu.%u, %llu committed",
             id, change.role == Role::kFollower && n.leads ? "IS DEPOSED" : name(change.role),
             ull(view_counter(change.view)), value(view_owner(change.view)),
             ull(value(n.core->last().index)), ull(view_counter(n.core->last().view)),
             value(view_owner(n.core->last().view)), ull(value(n.core->committed())));
  note(value(change.view), static_cast<std::uint64_t>(change.role));
  if (change.role != Role::kFailed) note_begun(id);
  if (id == faults_.analysis_slot()) violate(analysis_.on_role(id, change.role));
  if (change.role == Role::kLeader) {
    ++outcome_.views;
    violate(unique_views_.on_leads(id, n.process, change.view));
    if (faults_over_) ++outcome_.views_after_faults;
  }
  if (n.leads && change.role != Role::kLeader) {
    if (options_.mutant == core::Mutant::kProposeAgain) {
      again_.insert(again_.end(), n.in_flight.begin(), n.in_flight.end());
    }
    n.in_flight.clear();
  }
  const bool led = std::exchange(n.leads, change.role == Role::kLeader);
  if (application_ && led != n.leads) application_->leads(id, change.view, n.leads);
  if (change.role == Role::kRemoved) on_removed(id);
}

void Cluster::deliver(unsigned id) {
  Node& n = nodes_[id];
  if (world_.now_ns() < n.app_stalled_until_ns) return;
  while (outcome_.ok()) {
    const auto entry = n.core->deliver();
    if (!entry) break;
    check_delivered(id, *entry);
  }
}

void Cluster::check_delivered(unsigned id, const core::Entry& entry) {
  Node& n = nodes_[id];
  Delivered d;
  d.view = entry.at.view;
  d.crc = crc32c(entry.payload.data(), entry.payload.size(),
                 static_cast<std::uint32_t>(entry.type + entry.grant * 256U + entry.stamp_ns));
  if (entry.type < core::kOwnTypesMin && entry.payload.size() >= 8) {
    if (!application_) std::memcpy(&d.proposal, entry.payload.data(), 8);
    last_input_ = std::max(last_input_, entry.at.index);
  }
  const bool first = value(entry.at.index) > agreement_.committed();
  trace("replica %u delivers %llu of view %llu proposal %llu", id, ull(value(entry.at.index)),
        ull(value(entry.at.view)), ull(d.proposal));
  trace_.count(world_.now_ns(), id, "delivers", value(entry.at.index));
  note(value(entry.at.index), d.crc);
  if (beyond_) return;
  violate(no_gap_.on_delivered(id, entry.at.index));
  violate(agreement_.on_delivered(id, entry.at.index, d));
  n.server_position = {entry.pos + core::entry_bytes(entry.payload.size()), entry.at};
  n.refused = 0;
  if (application_) application_->delivered(id, entry);
  checkpoint_if_due(id);
  if (!first) return;
  if (entry.type == core::kConfig) on_config(entry);
  if (entry.type == core::kTruncation) {
    std::uint64_t upto = 0;
    std::memcpy(&upto, entry.payload.data(), sizeof upto);
    violate(covered_.on_truncation(Index{upto}, committed_config_.members));
  }
  violate(at_most_once_.on_committed(d.proposal));
  std::erase(n.in_flight, d.proposal);
  // The replica that first knew the commit has counted; a candidate may have learned it under other
  // members.
  const std::uint64_t i = value(entry.at.index);
  const bool counted = i > committers_.size() || committers_[i - 1] == id;
  if (counted && n.core->leading_view() != View{0} && n.app_stalled_until_ns == 0) {
    const core::Members& members = n.core->members();
    violate(
        majority_.on_committed(id, entry.at.index, holders_of(entry, members), members.voters()));
  }
}

// Number of voters with this very entry in their log memory (a voter that lost its memory once held
// it).
unsigned Cluster::holders_of(const core::Entry& entry, const core::Members& voters) {
  if (faults_.disk) return holders_on_disk(entry, voters);
  unsigned count = 0;
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    if (!voters.voter(id_of(i))) continue;
    const Node& n = nodes_[i];
    const std::uint64_t at = entry.pos & (faults_.ring_bytes - 1);
    const std::uint64_t first = std::min(core::kHeaderBytes, faults_.ring_bytes - at);
    core::EntryHeader h;
    std::memcpy(static_cast<void*>(&h), n.memory.data() + at, first);
    std::memcpy(reinterpret_cast<std::byte*>(&h) + first, n.memory.data(),
                core::kHeaderBytes - first);
    const bool holds = h.log_id == kLogId && h.pos == entry.pos &&
                       h.index == value(entry.at.index) && h.view == value(entry.at.view);
    if (holds || n.incarnation != voters.incarnation(id_of(i))) ++count;
  }
  return count;
}

void Cluster::violate(const std::string& complaint) {
  if (complaint.empty() || !outcome_.ok()) return;
  outcome_.violation = complaint;
  trace_.show_last();
  trace_line("VIOLATION %s", complaint.c_str());
}

void Cluster::note(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = outcome_.digest ^ (a * 0x9e3779b97f4a7c15U) ^ (b + world_.now_ns());
  h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9U;
  outcome_.digest = h ^ (h >> 32);
}

void Cluster::trace(const char* format, ...) {
  if (!trace_.is_enabled()) return;
  std::va_list arguments;
  va_start(arguments, format);
  trace_.detail(world_.now_ns(), format, arguments);
  va_end(arguments);
}

void Cluster::trace_line(const char* format, ...) {
  if (!trace_.is_enabled()) return;
  std::va_list arguments;
  va_start(arguments, format);
  trace_.trace_line(world_.now_ns(), format, arguments);
  va_end(arguments);
}

void Cluster::show_state() {
  static constexpr const char* kLives[] = {"up", "stopped", "down"};
  for (unsigned i = 0; i < faults_.replicas; ++i) {
    const Node& n = nodes_[i];
    const std::string promised = text(View{n.cells[core::kPromiseCell][core::kPromisedView]});
    if (n.core == nullptr) {
      trace_line("replica %u: down, promised %s", i, promised.c_str());
      continue;
    }
    std::string cuts;
    for (unsigned j = 0; j < faults_.replicas; ++j) {
      if (link(i, j).cut) cuts += " ->" + std::to_string(j);
    }
    trace_line(
        "replica %u: %s, %s, promised %s, log ends at %llu of %s, committed %llu, delivered "
        "%llu%s%s",
        i, kLives[static_cast<int>(n.life)], name(n.core->role()), promised.c_str(),
        ull(value(n.core->last().index)), text(n.core->last().view).c_str(),
        ull(value(n.core->committed())), ull(value(n.core->delivered())),
        cuts.empty() ? "" : ", cut", cuts.c_str());
  }
}

Faults draw(std::uint64_t seed, const Options& options) {
  Faults f = options.application != nullptr ? options.application->draw(seed)
             : options.analysis             ? Faults::draw_analysis(seed)
             : options.changes              ? Faults::draw_changes(seed)
             : options.laps                 ? Faults::draw_laps(seed)
             : options.checkpoints          ? Faults::draw_checkpoints(seed)
             : options.slow_disks           ? Faults::draw_slow_disks(seed)
                                            : Faults::draw(seed);
  if (options.small) f.condense();
  return f;
}

Outcome run_seed(std::uint64_t seed, const Options& options) {
  Faults faults = draw(seed, options);
  CRANE_ASSERT(faults.without(options.without));
  if (options.trace != nullptr) {
    std::fprintf(options.trace, "seed %llu: %s\n", ull(seed), faults.print().c_str());
  }
  if (options.until_ns != 0) faults.duration_ns = std::min(faults.duration_ns, options.until_ns);
  Cluster cluster(seed ^ (options.salt << 40), faults, options);
  Outcome outcome = cluster.run();
  outcome.seed = seed;
  return outcome;
}

std::uint64_t first_seed(std::uint64_t fallback) {
  const char* text = std::getenv("CRANE_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

const char* name(core::Mutant mutant) {
  static constexpr const char* kNames[] = {"none",
                                           "skip-fence",
                                           "scan-before-fence",
                                           "minority-commit",
                                           "count-old-views",
                                           "restamp",
                                           "keep-own-log",
                                           "count-gap",
                                           "overwrite-uncopied",
                                           "amnesiac-voter",
                                           "forget-promise",
                                           "commit-unrepaired",
                                           "propose-again",
                                           "ack-before-sync",
                                           "durable-any-view",
                                           "vote-with-short-log",
                                           "promise-not-durable",
                                           "config-before-start",
                                           "swap-voters",
                                           "stale-config",
                                           "learner-counts",
                                           "learner-votes",
                                           "serve-uncommitted",
                                           "keep-own-tail",
                                           "fetch-any-view",
                                           "start-late",
                                           "start-early",
                                           "replay-unchecked",
                                           "checkpoint-any-view",
                                           "keep-ignored",
                                           "keep-forgotten",
                                           "keep-taken-back",
                                           "keep-delivered",
                                           "cover-minority",
                                           "cover-the-lost",
                                           "drop-uncovered",
                                           "drop-uncommitted",
                                           "promote-analysis",
                                           "analysis-returns",
                                           "add-as-learner",
                                           "reuse-key",
                                           "late-copy",
                                           "silent-commit",
                                           "known-log-id",
                                           "skip-crc",
                                           "no-stickiness",
                                           "error-stops-all",
                                           "constant-timeout",
                                           "deposed-by-disk",
                                           "leads-alone",
                                           "late-tick"};
  static_assert(std::size(kNames) == core::kMutants);
  return kNames[static_cast<std::size_t>(mutant)];
}

}  // namespace crane::consensus::sim
