// SPDX-License-Identifier: Apache-2.0
// The node's part in checkpoints (checkpointer.h): taking one, and what it holds.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "checkpoint/criu.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/tree.h"
#include "dmt/rest.h"
#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/node/node.h"
#include "proxy/node/recovery/file_names.h"
#include "proxy/node/recovery/shipping.h"
#include "proxy/node/server_pids.h"

namespace crane::node {
namespace {

constexpr unsigned kCheckpointsKept = 3;
// However fast the log grows: the one before should be done.

double ms(std::int64_t us) { return static_cast<double>(us) / 1000; }

}  // namespace

// --- taking one ---------------------------------------------------------------------------------

void Node::open_checkpointer() {
  CheckpointActions actions;
  actions.prepare = [this] { return prepare_dump(); };
  actions.place = [this] { return begin_place(); };
  actions.admitted = [this] {
    slot0_->pump();
    slot0_->admit();
    drain();
    return applied() >= checkpointer_->at();
  };
  actions.unrest = [this] { return unrest(); };
  actions.slide = [this] { return slide(); };
  actions.dump = [this] { return dump(); };
  actions.release = [this] { release_log(); };
  actions.publish = [this] { return publish(); };
  actions.discard = [this] { discard(); };
  checkpointer_ = std::make_unique<Checkpointer>(std::move(actions));
  checkpoints_ = std::make_unique<checkpoint::Checkpoints>(
      checkpoint::Checkpoints::Options{config_.checkpoints_dir(), 1, {}});
  (void)checkpoints_->clean(checkpoint::Leftovers::kAllButShipments).ok();
  no_checkpoints_ = why_no_checkpoints();
  const bool wanted = config_.checkpoint_every_s != 0 || config_.checkpoint_log_mb != 0;
  if (wanted && !no_checkpoints_.empty()) {
    spdlog::warn("no checkpoints are taken: {}", no_checkpoints_);
  }
  if (config_.container && !no_checkpoints_.empty()) note_refusal(false, no_checkpoints_);
}

std::string Node::why_no_checkpoints() const {
  if (!config_.container) return "the server runs without a container";
  const auto criu = checkpoint::find_criu();
  return criu.ok() ? "" : criu.error().what;
}

// --- what stores may be cut by
// --------------------------------------------------------------------

// Those that a former run left.
void Node::find_own_checkpoints() {
  if (!config_.on_disk()) return;
  if (restored_from_.empty() && value(consensus_->status().last) > 0) came_back_by_ = "replay";
  const auto all = checkpoints_->list();
  if (!all.ok()) return;
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  for (const checkpoint::Listed& one : all.value()) {
    const bool ours = one.manifest.group == config_.group && one.manifest.log_digest == digest;
    if (one.verified && one.damage.empty() && ours) {
      own_checkpoints_.push_back(one.manifest.at.index);
    }
  }
  std::sort(own_checkpoints_.begin(), own_checkpoints_.end());
}

// A checkpoint that this replica might have to distrust later is none to rely on: it is told once
// the replica was compared with the others behind it.  Not while one is packed, because the packer
// keeps the one that was relied on when it began.
void Node::tell_of_checkpoints() {
  if (own_checkpoints_.empty() || !packer_.idle()) return;
  const Index trusted{config_.replicas > 1 ? live_check_->alarms().unbroken() : ~std::uint64_t{0}};
  const auto behind = std::upper_bound(own_checkpoints_.begin(), own_checkpoints_.end(), trusted);
  if (behind == own_checkpoints_.begin()) return;
  relied_ = *std::prev(behind);
  own_checkpoints_.erase(own_checkpoints_.begin(), behind);
  checkpoint::fault_point("truncate.holds");
  consensus_->checkpointed(relied_);
  checkpoint::fault_point("truncate.told");
}

// Nobody else votes.
bool Node::alone() const {
  const auto members = consensus_->members();
  return std::none_of(members.begin(), members.end(), [this](const consensus::MemberStatus& m) {
    return m.role == consensus::MemberRole::kVoter && value(m.id) != config_.replica;
  });
}

// Somebody asks the leader, who chooses the replica: never itself, unless it is alone.
std::string Node::ask_for_checkpoint(const nlohmann::json& request) {
  if (!leadership_.started()) return refused("not_leader", "this replica does not lead");
  if (request.value("tier", "") == "restart") return ask_for_restart();
  const int named = request.value("replica", -1);
  std::vector<std::uint8_t> able;
  for (const consensus::MemberStatus& m : consensus_->members()) {
    if (m.role != consensus::MemberRole::kVoter || value(m.id) == config_.replica) continue;
    if (m.connected && m.streaming) able.push_back(value(m.id));
  }
  if (alone()) able.push_back(config_.replica);
  if (named >= 0 && std::find(able.begin(), able.end(), named) == able.end()) {
    return refused("busy", fmt::format("replica {} is the leader, or does not follow", named));
  }
  if (able.empty()) return refused("busy", "no other replica follows");
  // In turn: stores are cut below checkpoints of a majority.
  auto chosen = std::upper_bound(able.begin(), able.end(), last_asked_);
  if (chosen == able.end()) chosen = able.begin();
  const auto who = named >= 0 ? static_cast<std::uint8_t>(named) : *chosen;
  const CheckpointBody body{who};
  const Result<Index> index = propose(EntryType::kCheckpoint, 0, proxy::bytes_of(body));
  if (!index.ok()) return refused("busy", index.error().what);
  last_asked_ = who;
  return nlohmann::json{{"ok", true},
                        {"replica", who},
                        {"index", value(index.value())},
                        {"message", fmt::format("replica {} takes a checkpoint at entry {}", who,
                                                value(index.value()))}}
      .dump();
}

// The leader's.
void Node::ask_now_and_then() {
  if (!proxy_->leading() || !no_checkpoints_.empty()) return;
  if (!schedule_.due(now_ns_, intake_->end(), intake_->inputs_of_clients())) return;
  (void)ask_for_checkpoint(nlohmann::json::object());
}

void Node::checkpoint_at(const consensus::EntryView& entry) {
  CheckpointBody body;
  if (!proxy::read_body(entry.payload, body) || body.replica != config_.replica) return;
  // One that ended the life before would end this one.
  if (entry.at.index <= catch_up_.missed() || leadership_.role() == consensus::Role::kLearner) {
    checkpointer_->refuse(entry.at.index, "this replica came back after it was asked");
    return;
  }
  if (restarter_->state() != Restarter::State::kIdle || restart_is_due_ || staging_) {
    checkpointer_->refuse(entry.at.index, "the one before was not finished");
    return;
  }
  checkpointer_->asked(now_ns_, entry.at.index);
  checkpoint::fault_point("take.preparing");
}

Outcome Node::prepare_dump() {
  if (exit_.exited() || !guard_->running() || guard_->pid() < 0) {
    return Error{Code::kNotFound, 0, "no server runs"};
  }
  auto staging = checkpoints_->begin(checkpointer_->at());
  if (!staging.ok()) return told(staging.error());
  staging_.emplace(std::move(staging).value());
  return guard_->prepare_checkpoint(staging_->path);
}

// Nothing is held yet: what was taken last is the place.
Index Node::begin_place() {
  noted_ = {};
  noted_.passed = stalls_->passed();
  noted_.at = intake_->delivered().at;
  noted_.position = intake_->delivered().end;
  noted_.stamp_ns = intake_->delivered().stamp_ns;
  noted_.facts = consensus_->group_facts();
  checkpoint::fault_point("take.held");
  return intake_->delivered().at.index;
}

void Node::note_place(const consensus::EntryView& entry) {
  noted_.at = entry.at;
  noted_.position = entry.end_pos;
  noted_.facts = consensus_->group_facts();
  noted_.stamp_ns = entry.stamp_ns;
  // stalls_ has heard of what is held already.
  const auto type = static_cast<EntryType>(entry.type);
  if (PassedBody b; type == EntryType::kPassed && proxy::read_body(entry.payload, b)) {
    noted_.passed = std::max(noted_.passed, b.clock);
  }
  if (PreemptBody b; type == EntryType::kPreempt && proxy::read_body(entry.payload, b)) {
    noted_.passed = std::max(noted_.passed, b.clock);
  }
}

Index Node::slide() {
  return intake_->slide([this](const consensus::EntryView& entry) { note_place(entry); });
}

void Node::look_after_checkpoint() {
  const bool leads_others = leadership_.role() != consensus::Role::kFollower && !alone();
  checkpoint_due_ns_ = checkpointer_->step(now_ns_, leads_others);
}

// When it is at rest this node has the turn, until release_log().
std::string Node::unrest() {
  if (exit_.exited() || !guard_->running() || guard_->pid() < 0) return "no server runs";
  if (guard_->ending() != 0) return "a process of it is being ended by the kernel";
  if (!dmt::take_lying_turn(*layout_)) return "a thread has the turn";
  drain();
  const dmt::Restless restless = dmt::find_restless(*layout_);
  if (restless.why == dmt::Unrest::kNothing) return "";
  char text[160];
  dmt::describe(*layout_, restless, text);
  dmt::lay_turn_down(*layout_);
  return text;
}

// REQUIRES: at rest (Q2).
Outcome Node::dump() {
  const dmt::SchedulerState& s = layout_->scheduler;
  CRANE_ASSERT(s.applied_index.load() == value(noted_.at.index));
  checkpoint::fault_point("take.resting");
  const std::int64_t begin_ns = monotonic_ns();
  noted_.clock = s.clock;
  noted_.hash = s.hash;
  noted_.first_start = intake_->first_start();
  noted_.verified = live_check_->alarms().unbroken();
  noted_.anew_from = live_check_->alarms().anew_from();
  noted_.entries = intake_->counts();
  noted_.outputs = outputs_->state();
  std::error_code ignored;
  const auto size = std::filesystem::file_size(config_.replica_dir() + "/server.log", ignored);
  noted_.log_bytes = ignored ? 0 : size;
  noted_digest_ = fmt::format("{:016x}", outputs_->digest());
  const auto pid = last_pid(guard_->pid());
  if (!pid.ok()) return pid.error();
  noted_.last_pid = pid.value();
  // Before CRIU has descriptors of its own in the processes.
  noted_files_ = std::make_unique<nlohmann::json>(
      file_names(guard_->processes(), guard_->pid(), config_.replica_dir() + "/upper"));
  times_ = {};
  times_.noting = (monotonic_ns() - begin_ns) / 1000;
  // Nobody but this replica pays for the hurry; that of a group of one is what its clients wait
  // for.
  const unsigned leader = value(leadership_.leader());
  const bool alone = config_.replicas == 1 || (config_.host && config_.host->fabric != "shm");
  const bool hurry = alone || !shares_processor(config_.replica, leader);
  if (const Outcome begun = guard_->freeze(hurry); !begun.ok()) return begun;
  checkpoint::fault_point("take.asked");
  const Outcome copied = copy_shared();
  no_copies_ = copied.ok() ? "" : copied.error().what;
  guard_->thaw(copied.ok());
  return Done{};
}

// Whether the servers of two replicas of this machine run on one processor, for all that is known.
bool Node::shares_processor(unsigned a, unsigned b) const {
  const auto& cpus = config_.server_cpus;
  return a >= cpus.size() || b >= cpus.size() || cpus[a] < 0 || cpus[b] < 0 || cpus[a] == cpus[b];
}

// What the server maps, while CRIU dumps its processes: we have the turn, so nobody writes to it.
Outcome Node::copy_shared() {
  const std::int64_t begin_ns = monotonic_ns();
  const std::string shared = config_.replica_shm_dir();
  checkpoint::Why why;
  for (const char* name : kSharedState) {
    if (!std::filesystem::exists(shared + "/" + name)) continue;
    std::vector<checkpoint::FileRange> read;
    if (std::string_view(name) == "segment") read = slot0_->read_bytes();
    if (const Outcome copied = copy_shared_file(name, why, read); !copied.ok()) {
      spdlog::error("{}", why.text);
      return copied;
    }
  }
  times_.segment = (monotonic_ns() - begin_ns) / 1000;
  return Done{};
}

Outcome Node::copy_shared_file(const std::string& name, checkpoint::Why& why,
                               std::span<const checkpoint::FileRange> left_out) const {
  return checkpoint::copy_tree(config_.replica_shm_dir() + "/" + name, staging_->path + "/" + name,
                               why, left_out);
}

void Node::dumped(const std::string& why_not) {
  if (why_not.empty()) {
    checkpoint::fault_point("take.dumped");
    times_.keeper = guard_->dump_times();
    const checkpoint::CheckpointTimes& t = times_.keeper;
    spdlog::info(
        "dumped: noted in {:.1f} ms, stopped after {:.1f}, dumped in {:.1f} (memory {:.1f}), files "
        "copied in {:.1f}, thawed after {:.1f} and {:.1f}; segment copied in {:.1f}",
        ms(times_.noting), ms(t.stopping), ms(t.dumping), ms(t.memory), ms(t.copying),
        ms(t.waiting), ms(t.thawing), ms(times_.segment));
  }
  checkpointer_->dumped(monotonic_ns(),
                        no_copies_.empty() || why_not.empty() ? why_not : no_copies_);
}

Error Node::told(const Error& error) const {
  spdlog::error("{}", checkpoints_->why());
  return error;
}

// What was held is taken in its order; one of them may be the next CHECKPOINT.
void Node::release_log() {
  if (dmt::has_turn(*layout_, dmt::kNodeSlot)) dmt::lay_turn_down(*layout_);
  intake_->release();
}

// --- packing it ---------------------------------------------------------------------------------

Outcome Node::publish() {
  checkpoint::fault_point("take.released");
  const Outcome begun = packer_.start(
      [this](const checkpoint::Worker::Say&, checkpoint::Why& why) { return pack(why); });
  if (!begun.ok()) return begun;
  event_assign(
      &packed_event_, loop_.base(), packer_.event_fd(), EV_READ | EV_PERSIST,
      [](int, short, void* node) { static_cast<Node*>(node)->take_published(); }, this);
  event_add(&packed_event_, nullptr);
  return Done{};
}

// In the packer's process.  The name of the checkpoint, which was read once more.
Result<std::string> Node::pack(checkpoint::Why& why) {
  checkpoint::Manifest m;
  m.group = config_.group;
  m.log_digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  m.at = noted_.at;
  m.cursor = noted_.position;
  m.replica = config_.replica;
  m.layout_version = dmt::kLayoutVersion;
  utsname machine{};
  if (::uname(&machine) == 0) m.kernel = machine.release;
  if (const auto criu = checkpoint::find_criu(); criu.ok()) {
    if (auto version = checkpoint::criu_version(criu.value()); version.ok()) {
      m.criu = std::move(version).value();
    }
  }
  m.program = config_.program;
  m.tier = packs_tier_;
  // The server stood still long enough without it.
  if (m.tier == checkpoint::Tier::kCriu) {
    if (const Outcome copied = copy_shared_file(kSharedLibrary, why); !copied.ok()) {
      return copied.error();
    }
  }
  m.library_digest = checkpoint::digest_of_file(config_.libcrane);
  m.schedule_hash = noted_.hash;
  m.clock = noted_.clock;
  m.output_digest = noted_digest_;
  nlohmann::json state = to_json(noted_);
  state["files"] = std::move(*noted_files_);
  state["agreed"] = agreed_;
  if (m.tier == checkpoint::Tier::kRestart) state["carried"] = carried_json();
  m.node_state = state.dump();
  // What a packer before this one left, and a shipment that is older than what is packed now.
  (void)checkpoints_->clean(checkpoint::Leftovers::kAll).ok();
  auto name = checkpoints_->publish(*staging_, std::move(m));
  const Outcome well = name.ok() ? checkpoints_->verify(name.value()) : Outcome{name.error()};
  if (!well.ok()) {
    why.text = checkpoints_->why();
    return well.error();
  }
  // Recordings outlive the group: a replay can begin there.
  if (!config_.record.empty()) {
    const std::string there = config_.record + "/checkpoints";
    const Outcome kept = checkpoints_->ship(name.value(), there);
    if (!kept.ok()) spdlog::warn("not kept with the recording: {}", checkpoints_->why());
    (void)checkpoint::Checkpoints({there, 1, {}}).keep(kCheckpointsKept).ok();
  }
  // What cannot be removed now is looked at the next time.
  (void)checkpoints_->keep(kCheckpointsKept, relied_).ok();
  return name;
}

void Node::take_published() {
  awake();
  // It watches the descriptor until the worker has closed it.
  event_del(&packed_event_);
  if (!packer_.advance()) {
    event_add(&packed_event_, nullptr);
    return;
  }
  const bool well = packer_.result().ok();
  const bool dumped =
      std::exchange(packs_tier_, checkpoint::Tier::kCriu) == checkpoint::Tier::kCriu;
  if (well && dumped) last_times_ = times_;
  if (dumped) {
    checkpointer_->published(monotonic_ns(), well ? "" : packer_.why());
  } else if (well) {
    checkpointer_->restarted(noted_.at.index, monotonic_ns() - packing_ns_);
  } else {
    checkpointer_->refuse(noted_.at.index, packer_.why());
    discard();
  }
  if (!well) return;
  staging_.reset();
  if (config_.on_disk()) own_checkpoints_.push_back(noted_.at.index);
}

void Node::discard() {
  if (guard_ != nullptr) guard_->cancel_checkpoint();
  if (!staging_) return;
  checkpoints_->abandon(*staging_);
  staging_.reset();
}

void Node::stop_packing() {
  if (!packer_.idle()) event_del(&packed_event_);
  packer_.stop();
  if (shipping_ != nullptr) shipping_->stop();
  if (checkpointer_ != nullptr) discard();
}

// This replica has differed from the others since some point behind the last verified cut: what it
// kept since then may differ as well (FALCON 6.2).
void Node::distrust_checkpoints() {
  stop_packing();
  const auto all = checkpoints_->list();
  if (!all.ok()) return;
  for (const checkpoint::Listed& one : all.value()) {
    if (value(one.manifest.at.index) <= live_check_->alarms().unbroken()) continue;
    CRANE_ASSERT(one.manifest.at.index != relied_);  // G5
    const Outcome gone = checkpoints_->remove(one.name);
    spdlog::warn("checkpoint {} is younger than the last verified entry {}: {}", one.name,
                 live_check_->alarms().unbroken(), gone.ok() ? "removed" : checkpoints_->why());
  }
}

}  // namespace crane::node
