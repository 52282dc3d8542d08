// SPDX-License-Identifier: Apache-2.0
// How a node begins otherwise than with a new server: from a checkpoint; and how it ends so that
// it, or its successor, may begin so again.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "checkpoint/descriptor.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/kept.h"
#include "dmt/scheduler.h"
#include "proxy/node/node.h"
#include "proxy/node/recovery/file_names.h"
#include "proxy/node/recovery/shipping.h"
#include "proxy/node/server_pids.h"
#include "runtime/setup/preflight.h"

namespace crane::node {
namespace {

// How often a replica looks whether it lacks what only a checkpoint has, and the leader for such.
constexpr std::int64_t kLookNs = 50'000'000;
// A checkpoint that was asked for and did not come is asked for again after this long.
constexpr std::int64_t kAskAgainNs = 5'000'000'000;

}  // namespace

// --- coming back from one -----------------------------------------------------------------------

// Of this machine, newest first; of a replay the one that it begins with.
std::vector<checkpoint::Kept> Node::checkpoints_to_try() const {
  if (!config_.replays) return checkpoint::find_kept(config_.dir).checkpoints;
  const std::filesystem::path path = config_.restore_from;
  auto found = checkpoint::Checkpoints({path.parent_path(), 1, {}}).find(path.filename());
  if (!found.ok()) return {};
  return {{-1, std::move(found).value()}};
}

// The newest of the group's that can be used, or the one that is named; on one machine any
// replica's will do.  False: the node cannot begin.
bool Node::find_checkpoint() {
  const checkpoint::Expected expected = expected_of(config_);
  const std::string target = config_.replica_dir() + "/restored";
  std::error_code ignored;
  std::filesystem::remove_all(target, ignored);
  const std::string& name = config_.checkpoint;
  bool any = false;
  for (const auto& [replica, one] : checkpoints_to_try()) {
    if (config_.skip_checkpoints || (!name.empty() && one.name != name)) continue;
    any = true;
    const std::string directory = std::filesystem::path(one.path).parent_path();
    checkpoint::Checkpoints place({directory, 1, {}});
    auto manifest = place.unpack(one.name, target, expected);
    if (!manifest.ok()) {
      spdlog::warn("a checkpoint cannot be used: {}", place.why());
      continue;
    }
    restored_json_ = manifest.value().node_state;
    auto state = node_state(nlohmann::json::parse(restored_json_, nullptr, false));
    if (!state.ok()) {
      spdlog::warn("a checkpoint cannot be used: {}: {}", one.path, state.error().what);
      std::filesystem::remove_all(target, ignored);
      continue;
    }
    restored_ = std::move(state).value();
    if (!is_of_this_configuration(one.path)) return false;
    const bool files_only = manifest.value().tier == checkpoint::Tier::kRestart;
    if (files_only && !take_carried(nlohmann::json::parse(restored_json_, nullptr, false))) {
      spdlog::warn("a checkpoint cannot be used: {}: what goes on with a new server", one.path);
      std::filesystem::remove_all(target, ignored);
      restored_ = {};
      continue;
    }
    if (files_only) server_upper_ = target + "/upper";
    restored_from_ = target;
    returned_.unpacking = (monotonic_ns() - began_ns_) / 1000;
    came_back_by_ = checkpoint::name_of(manifest.value().tier);
    take_up_log();
    checkpoint::fault_point("return.unpacked");
    spdlog::info("this replica begins at the checkpoint at entry {} ({})",
                 value(restored_.at.index), one.path);
    return true;
  }
  if (!config_.restore) return true;  // consensus knows whether one is needed
  if (config_.may_begin) {
    spdlog::info("no checkpoint can be used: this replica runs all inputs from the beginning");
    came_back_by_ = "replay";
    take_up_log();
    return true;
  }
  fail(ExitStatus::kNoCheckpoint,
       fmt::format("no checkpoint {}{} can be used: {}", name.empty() ? "" : name + " ",
                   config_.replays ? config_.restore_from : "in " + config_.dir + "/r*/checkpoints",
                   any ? "see the lines before" : "there is none"));
  return false;
}

// CRIU brings a server back as it was started, whatever its command line is now: that is said
// instead of left to be found out.
bool Node::is_of_this_configuration(const std::string& path) {
  const auto state = nlohmann::json::parse(restored_json_, nullptr, false);
  const auto noted = state.find("agreed");
  if (!mode_.member() || noted == state.end() || !noted->is_array() ||
      noted->size() != kAgreedItems) {
    return true;
  }
  Agreed theirs{};
  for (std::size_t i = 0; i < kAgreedItems; ++i) {
    if (!(*noted)[i].is_number_unsigned()) return true;
    theirs[i] = (*noted)[i].get<std::uint64_t>();
  }
  theirs[kAgreedReplicas] = agreed_[kAgreedReplicas];
  const char* what = first_difference(agreed_, theirs);
  if (what == nullptr) return true;
  fail(ExitStatus::kDisagrees,
       fmt::format(
           "replica {}: {} changed since the checkpoint at entry {} ({}), and a server comes "
           "back as it was; start it as before, or begin anew on all hosts at once with "
           "--force-new-group, which gives up what the group holds",
           config_.replica, what, value(restored_.at.index), path));
  return false;
}

// At the checkpoint's place, if there is one; of a new server that runs all inputs at the log's
// beginning.
Result<std::unique_ptr<consensus::Consensus>> Node::open_log(consensus::Options options) {
  if (!restored_from_.empty()) {
    options.checkpoint = consensus::Checkpoint{{restored_.at, restored_.position}, restored_.facts};
  } else if (runs_all_again()) {
    options.checkpoint = consensus::Checkpoint{};
  }
  const LogReader reader{[this] { return !slot0_->spooling(); },
                         [this] { return value(intake_->first_start()) != 0; }};
  auto opened = mode_.open_log(options, restored_.at.index, reader);
  if (opened.ok() || opened.error().code != Code::kGone || config_.on_disk()) return opened;
  if (config_.keeps_log) return opened;
  spdlog::warn("what this replica missed is not in its own log any more: the others have it");
  options.forget = true;
  return mode_.open_log(std::move(options), restored_.at.index, reader);
}

bool Node::runs_all_again() const { return config_.restore && restored_from_.empty(); }

// What the server said behind the checkpoint it will say again; what it said before stands in the
// log of who took it.  So every replica's log has the same bytes at the same places.
void Node::take_up_log() const {
  const std::string log = config_.replica_dir() + "/server.log";
  const checkpoint::Descriptor fd(::open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(restored_.log_bytes)) != 0) {
    spdlog::warn("{}: {}", log, std::strerror(errno));
  }
}

void Node::take_up_state() {
  const NodeState& s = restored_;
  if (!server_upper_.empty()) dmt::go_on_from(*layout_, carried_);
  outputs_->restore(s.outputs, {value(s.at.index), s.clock, s.hash});
  stalls_->restore(s.passed, s.clock);
  intake_->begin_behind(s.at.index, s.first_start, s.entries);
  live_check_->restore(s.at.index, s.verified, s.anew_from);
  leadership_.committed(static_cast<std::int64_t>(s.stamp_ns), monotonic_ns());
  mode_.begin_behind(s.at.index, s.outputs.hash.open);
}

void Node::begin_catching_up() {
  catch_up_.begin(consensus_->status().last, config_.replicas > 1, monotonic_ns());
  if (catch_up_.active()) consensus_->abdicate("its server comes back");
}

void Node::look_whether_caught_up() {
  if (!catch_up_.active()) return;
  CatchUp::Seen seen;
  seen.leads = leadership_.leads();
  seen.follows = leadership_.view() != View{0} &&
                 leadership_.role() == consensus::Role::kFollower &&
                 value(leadership_.leader()) < config_.replicas;
  seen.applied = applied();
  seen.committed = consensus_->status().committed;
  const CatchUp::Outcome outcome = catch_up_.step(seen, now_ns_);
  if (outcome == CatchUp::Outcome::kNothing) return;
  const bool there = outcome == CatchUp::Outcome::kCaughtUp;
  spdlog::info("{} at entry {}", there ? "caught up" : "still behind", value(seen.applied));
  if (there) progress_->caught_up();
  consensus_->fit();
}

// The restored server's threads sleep, and go on with the next entry.
void Node::take_up_server() {
  const auto before = nlohmann::json::parse(restored_json_, nullptr, false);
  const auto now = file_names(guard_->processes(), guard_->pid(), config_.replica_dir() + "/upper");
  const auto files = before.find("files");
  const Outcome renamed = files == before.end()
                              ? Outcome{Error{Code::kDamaged, 0, "no files"}}
                              : rename_files(*layout_, *files, now, guard_->pid());
  if (!renamed.ok()) {
    return fail(ExitStatus::kNoCheckpoint, "the checkpoint does not tell the names of files");
  }
  if (const Outcome numbered = set_last_pid(guard_->pid(), restored_.last_pid); !numbered.ok()) {
    return fail(ExitStatus::kNoCheckpoint, numbered.error().what);
  }
  checkpoint::fault_point("return.running");
  restored_json_.clear();
  for (std::uint32_t i = 1; i <= layout_->scheduler.files_used; ++i) {
    const dmt::FileRecord& f = layout_->files[i];
    if (f.kind != dmt::FileKind::kListener) continue;
    ask_for_listener(f.listener.port, f.listener.backlog);
    proxy_->output({OutputType::kListen, {}, f.listener.port, f.listener.backlog, 0}, {});
  }
  ports_->recover();
  dmt::lay_turn_down(*layout_);
  returned_.running = (monotonic_ns() - began_ns_) / 1000;
  returned_.keeper = guard_->restore_times();
  const auto ms = [](std::int64_t us) { return static_cast<double>(us) / 1000; };
  spdlog::info("came back: unpacked in {:.1f} ms, files copied in {:.1f}, CRIU {:.1f}; all {:.1f}",
               ms(returned_.unpacking), ms(returned_.keeper.copying), ms(returned_.keeper.criu),
               ms(returned_.running));
  std::error_code ignored;  // what was unpacked has served
  std::filesystem::remove_all(restored_from_, ignored);
}

// --- lacking one --------------------------------------------------------------------------------

// What this replica lacks has left the others' logs.  Its leader has one more checkpoint taken for
// it (help_lagging()); with that it begins anew.
void Node::look_for_newer() {
  if (leadership_.leads() || end_.stopping() || now_ns_ < lacking_at_ns_) return;
  lacking_at_ns_ = now_ns_ + kLookNs;
  if (!consensus_->status().needs_checkpoint) return;
  if (!std::exchange(lacking_, true)) {
    spdlog::warn(
        "entries behind {} have left the logs of the others: this replica waits for a "
        "newer checkpoint",
        value(intake_->last()));
  }
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  for (const auto& [replica, one] : checkpoints_to_try()) {
    const checkpoint::Manifest& m = one.manifest;
    if (!one.damage.empty() || m.log_digest != digest) continue;
    if (m.at.index <= std::max(intake_->last(), restored_.at.index)) break;
    // Who fetched it has not said so yet, and may not be done.
    if (replica == config_.replica && shipping_ != nullptr && shipping_->fetches()) return;
    return fail(ExitStatus::kTooFarBehind,
                fmt::format("entries behind {} have left the logs of the others; it begins anew at "
                            "a checkpoint, which is at entry {}",
                            value(intake_->last()), value(m.at.index)));
  }
  if (shipping_ != nullptr)
    shipping_->fetch(std::max(intake_->last(), restored_.at.index), now_ns_);
}

// The leader's part.
void Node::help_lagging() {
  if (!proxy_->leading() || now_ns_ < lacking_at_ns_) return;
  lacking_at_ns_ = now_ns_ + kLookNs;
  for (const consensus::MemberStatus& m : consensus_->members()) {
    // A server in valgrind cannot begin at one.
    if (m.role == consensus::MemberRole::kAnalysis) continue;
    if (!m.needs_checkpoint || value(m.id) == config_.replica) continue;
    const auto answer = nlohmann::json::parse(ask_for_checkpoint(nlohmann::json::object()));
    if (!answer.value("ok", false)) return;
    spdlog::info("replica {} lacks entries that left the log: {}", value(m.id),
                 answer.value("message", ""));
    lacking_at_ns_ = now_ns_ + kAskAgainNs;
    return;
  }
}

// Who belongs to the group, for crane-run, which starts the nodes of those who come.
void Node::tell_members() {
  if (supervisor_.present()) supervisor_.members(consensus_->status().members);
}

}  // namespace crane::node
