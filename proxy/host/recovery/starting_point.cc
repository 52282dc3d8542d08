// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/starting_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "checkpoint/descriptor.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/image.h"
#include "proxy/host/recovery/early_points.h"
#include "proxy/host/recovery/file_names.h"
#include "proxy/host/recovery/shipping.h"
#include "proxy/host/recovery/start_progress.h"
#include "proxy/host/server_pids.h"
#include "runtime/setup/preflight.h"

namespace crane::node {

std::vector<checkpoint::Kept> checkpoints_to_try(const Config& config) {
  if (!config.replays) {
    auto kept = checkpoint::find_kept(config.dir).checkpoints;
    std::stable_partition(kept.begin(), kept.end(),
                          [](const auto& one) { return !one.listed.distrusted; });
    return kept;
  }
  const std::filesystem::path path = config.restore_from;
  auto found = checkpoint::Checkpoints({path.parent_path(), 1, {}}).find(path.filename());
  if (!found.ok()) return {};
  return {{-1, std::move(found).value()}};
}

nlohmann::json to_json(const dmt::CarriedState& c) {
  return {{"admitted_view", value(c.admitted.view)},
          {"admitted", value(c.admitted.index)},
          {"view", value(c.view)},
          {"admissions", c.admissions},
          {"clock", c.clock},
          {"hash", c.hash},
          {"now_ns", c.now_ns},
          {"wall_offset_ns", c.wall_offset_ns},
          {"seed", c.seed}};
}

Result<dmt::CarriedState> carried_of(const nlohmann::json& state) {
  try {
    const nlohmann::json& from = state.at("carried");
    dmt::CarriedState c;
    c.admitted.view = View{from.at("admitted_view").get<std::uint64_t>()};
    c.admitted.index = Index{from.at("admitted").get<std::uint64_t>()};
    c.view = View{from.at("view").get<std::uint64_t>()};
    c.admissions = from.at("admissions");
    c.clock = from.at("clock");
    c.hash = from.at("hash");
    c.now_ns = from.at("now_ns");
    c.wall_offset_ns = from.at("wall_offset_ns");
    const auto seed = from.at("seed").get<std::array<std::uint64_t, 4>>();
    std::copy(seed.begin(), seed.end(), c.seed);
    return c;
  } catch (const nlohmann::json::exception&) {
    return Error{Code::kDamaged, 0, "the state for a new server in a checkpoint"};
  }
}

// --- choosing a checkpoint ----------------------------------------------------------------------

// Tries the group's newest usable checkpoint, or the named one; on one machine any replica's.
Outcome StartingPoint::find() {
  const std::string target = config_.replica_dir() + "/restored";
  std::error_code ignored;
  std::filesystem::remove_all(target, ignored);
  const std::string& name = config_.checkpoint;
  const std::optional<Index> gone = take_lost_start();
  bool any = false;
  for (const auto& [replica, one] : checkpoints_to_try(config_)) {
    if (!name.empty() && one.name != name) continue;
    const auto tries =
        replica::try_checkpoint(rules(), one.manifest.at.index, one.distrusted, gone);
    if (tries == replica::Try::kNo) continue;
    any = true;
    if (tries != replica::Try::kYes) {
      const bool left_out = tries == replica::Try::kLeftOut;
      spdlog::warn(
          "replicas that began at this checkpoint differed from the others, or their server did "
          "not start: {}{}",
          one.path, left_out ? "; it is skipped" : ", and there is no other");
      if (left_out) continue;
    }
    const Attempt attempt = try_one(one, target);
    if (attempt == Attempt::kOtherConfiguration) {
      return failure(ExitStatus::kDisagrees, changed_);
    }
    if (attempt == Attempt::kUnusable) {
      unusable_.push_back(one.manifest.at.index);
      continue;
    }
    cut_server_log();
    checkpoint::fault_point("return.unpacked");
    spdlog::info("this replica begins at the checkpoint at entry {} ({})", value(state_.at.index),
                 one.path);
    return Done{};
  }
  const replica::Otherwise next = replica::otherwise(rules());
  if (next == replica::Otherwise::kLogDecides) return Done{};
  if (next == replica::Otherwise::kFromBeginning) {
    spdlog::info("no checkpoint can be used: this replica runs all inputs from the beginning");
    replays_log();
    cut_server_log();
    return Done{};
  }
  return failure(
      ExitStatus::kNoCheckpoint,
      fmt::format("no checkpoint {}{} can be used: {}", name.empty() ? "" : name + " ",
                  config_.replays ? config_.restore_from : "in " + config_.dir + "/r*/checkpoints",
                  any ? "see the lines before" : "there is none"));
}

bool StartingPoint::is_unusable(Index at) const noexcept {
  return std::find(unusable_.begin(), unusable_.end(), at) != unusable_.end();
}

bool StartingPoint::skipped_distrusted() const {
  if (config_.skip_checkpoints) return false;
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  const auto all = checkpoints_to_try(config_);
  return std::any_of(all.begin(), all.end(), [&](const checkpoint::Kept& one) {
    const checkpoint::Listed& c = one.listed;
    return c.distrusted && c.belongs_to(digest) && c.manifest.at.index > state_.at.index &&
           !is_unusable(c.manifest.at.index);
  });
}

void StartingPoint::note_log_lost() const {
  if (config_.skip_checkpoints) return;  // the replica had no choice
  const Outcome noted = checkpoint::write_file(
      config_.replica_dir() + "/" + setup::kLogGone,
      fmt::format("{} {}\n", checkpoint::digest_of_log(config_.group, config_.log_id),
                  value(state_.at.index)));
  if (!noted.ok()) spdlog::error("cannot note where the log begins: {}", noted.error().message());
}

// The entry after which the log begins, if the previous process noted it.  Removes the note: later
// only the findings of this process count.
std::optional<Index> StartingPoint::take_lost_start() const {
  if (config_.skip_checkpoints || !config_.checkpoint.empty()) return std::nullopt;
  const std::string path = config_.replica_dir() + "/" + setup::kLogGone;
  std::ifstream note(path);
  std::string log;
  std::uint64_t at = 0;
  const bool whole =
      bool(note >> log >> at) && log == checkpoint::digest_of_log(config_.group, config_.log_id);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return whole ? std::optional(Index{at}) : std::nullopt;
}

StartingPoint::Attempt StartingPoint::try_one(const checkpoint::Listed& one,
                                              const std::string& target) {
  const std::string directory = std::filesystem::path(one.path).parent_path();
  StartProgress progress(config_, "unpack", "the checkpoint " + one.name);
  checkpoint::Checkpoints place(progress.reported(directory));
  auto manifest = place.unpack(one.name, target, expected_of(config_));
  if (!manifest.ok()) {
    spdlog::warn("a checkpoint cannot be used: {}", manifest.error().message());
    return Attempt::kUnusable;
  }
  const auto unusable = [&](const std::string& why) {
    spdlog::warn("a checkpoint cannot be used: {}: {}", one.path, why);
    std::error_code ignored;
    std::filesystem::remove_all(target, ignored);
    state_ = {};
    json_.clear();
    return Attempt::kUnusable;
  };
  json_ = manifest.value().node_state;
  const auto parsed = nlohmann::json::parse(json_, nullptr, false);
  auto state = node_state(parsed);
  if (!state.ok()) return unusable(state.error().message());
  state_ = std::move(state).value();
  if (const auto changed = changed_since(one.path)) {
    changed_ = *changed;
    return Attempt::kOtherConfiguration;
  }
  const std::vector<EarlyPoint> noted = noted_early_points(config_);
  if (const EarlyPoint* const lacked = first_missing(state_, noted); lacked != nullptr) {
    return unusable(
        fmt::format("its server has passed clock {} without a tick point that counts from "
                    "that clock on",
                    lacked->clock));
  }
  if (manifest.value().tier == checkpoint::Tier::kRestart) {
    const auto carried = carried_of(parsed);
    const bool whole = carried.ok() && carried.value().admitted.index == state_.at.index &&
                       carried.value().clock == state_.clock;
    if (!whole) return unusable("the state for a new server is missing or wrong");
    carried_ = carried.value();
    upper_ = target + "/upper";
  }
  directory_ = target;
  path_ = one.path;
  times_.unpacking = since_begin_us();
  recovered_by_ = checkpoint::name_of(manifest.value().tier);
  return Attempt::kUsable;
}

// CRIU restores a server as it was started, even if its command line was changed since; so a change
// is reported (START-2).
std::optional<std::string> StartingPoint::changed_since(const std::string& path) const {
  const auto state = nlohmann::json::parse(json_, nullptr, false);
  const auto noted = state.find("agreed");
  if (!member_ || noted == state.end() || !noted->is_array() || noted->size() != kAgreedItems) {
    return std::nullopt;
  }
  Agreed theirs{};
  for (std::size_t i = 0; i < kAgreedItems; ++i) {
    if (!(*noted)[i].is_number_unsigned()) return std::nullopt;
    theirs[i] = (*noted)[i].get<std::uint64_t>();
  }
  theirs[kAgreedReplicas] = agreed_[kAgreedReplicas];
  if (state_.handed_over) theirs[kAgreedSchedule] = agreed_[kAgreedSchedule];
  const char* what = first_difference(agreed_, theirs);
  if (what == nullptr) return std::nullopt;
  return fmt::format(
      "replica {}: {} changed since the checkpoint at entry {} ({}), but a server is restored with "
      "its old configuration; start it as before, or start over on all hosts at once with "
      "--force-new-group, which discards the group's state",
      config_.replica, what, value(state_.at.index), path);
}

// The server writes its output after the checkpoint again.  Output before it is in the log of the
// replica that took it.  So every replica's log has the same bytes at the same offsets.
void StartingPoint::cut_server_log() const {
  const std::string log = config_.replica_dir() + "/server.log";
  const checkpoint::Descriptor fd(::open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(state_.log_bytes)) != 0) {
    spdlog::warn("{}: {}", log, std::strerror(errno));
  }
}

std::optional<consensus::Checkpoint> StartingPoint::log_position() const {
  if (at_checkpoint()) return consensus::Checkpoint{{state_.at, state_.position}, state_.facts};
  if (runs_all_again()) return consensus::Checkpoint{};
  return std::nullopt;
}

void StartingPoint::differed(Index at) const {
  if (!at_checkpoint()) return;
  const std::filesystem::path path = path_;
  const Outcome noted =
      checkpoint::Checkpoints({path.parent_path(), 1, {}}).note_difference(path.filename(), at);
  if (noted.ok() || noted.error().code == Code::kNotFound) return;  // not found: removed meanwhile
  spdlog::error("cannot mark the checkpoint {}: {}", path_, noted.error().message());
}

void StartingPoint::server_failed() const {
  if (member_) differed(state_.at.index);
}

// --- the server runs ----------------------------------------------------------------------------

Outcome StartingPoint::rename_open_files(dmt::Layout& layout, const ServerMonitor& monitor,
                                         std::string& why) const {
  const auto before = nlohmann::json::parse(json_, nullptr, false);
  const auto files = before.find("files");
  const auto now = file_names(monitor.processes(), monitor.pid(), config_.replica_dir() + "/upper");
  const Outcome renamed = files == before.end() ? Outcome{Error{Code::kDamaged, 0, "no files"}}
                                                : rename_files(layout, *files, now, monitor.pid());
  if (!renamed.ok()) {
    why = "the restored server has ended, or its checkpoint lacks the names of files";
    return renamed;
  }
  const Outcome numbered = set_last_pid(monitor.pid(), state_.last_pid);
  if (!numbered.ok()) why = numbered.error().message();
  return numbered;
}

Outcome StartingPoint::resume(dmt::Layout& layout, const ServerMonitor& monitor, std::string& why) {
  const auto ms = [](std::int64_t us) { return static_cast<double>(us) / 1000; };
  if (restores_processes()) {
    if (const Outcome renamed = rename_open_files(layout, monitor, why); !renamed.ok()) {
      return renamed;
    }
    checkpoint::fault_point("return.running");
  }
  json_.clear();
  times_.running = since_begin_us();
  if (restores_processes()) {
    times_.supervisor = monitor.restore_times();
    spdlog::info(
        "recovered: unpacked in {:.1f} ms, files copied in {:.1f}, CRIU {:.1f}; all {:.1f}",
        ms(times_.unpacking), ms(times_.supervisor.copying), ms(times_.supervisor.criu),
        ms(times_.running));
  } else {
    spdlog::info("recovered: unpacked in {:.1f} ms, a new server on the files after {:.1f}",
                 ms(times_.unpacking), ms(times_.running));
  }
  std::error_code ignored;  // the unpacked checkpoint is no longer needed
  std::filesystem::remove_all(directory_, ignored);
  return Done{};
}

}  // namespace crane::node
