// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/host_config.h"

#include <algorithm>
#include <filesystem>

#include "checkpoint/base.h"
#include "checkpoint/kept.h"
#include "dmt/base/assert.h"
#include "dmt/base/join.h"
#include "proxy/host/placement.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/branch_counter.h"
#include "runtime/setup/data_in_use.h"
#include "runtime/setup/http.h"
#include "runtime/setup/http_access.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"
#include "runtime/setup/secret.h"

namespace crane::node {
namespace {

using setup::failure;
using setup::Status;

// The server gets nothing from the caller's environment, which differs from host to host.
constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

void set(std::vector<std::string>& environment, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto old =
        std::find_if(environment.begin(), environment.end(),
                     [&](const std::string& v) { return name_of(v) == name_of(word); });
    if (old != environment.end()) {
      *old = word;
    } else {
      environment.push_back(word);
    }
  }
}

Outcome choose_profile(const setup::GroupFile& f, const std::string& path,
                       const std::string& program, setup::Profile& profile) {
  const std::vector<std::string> args(f.command.begin() + 1, f.command.end());
  if (setup::find_profile(f.profile, program, args, profile)) return Done{};
  return failure(Status::kGroupFile, "cannot use the group's file", path,
                 "[server] profile is \"" + f.profile + "\"",
                 "use one of: " + joined(setup::profile_names()));
}

// Files on tmpfs are lost when the machine loses power, even if synced.
Outcome check_disk(const setup::GroupFile& f, const std::string& path, const std::string& dir) {
  if (f.durability != "disk" || !setup::is_in_memory(dir)) return Done{};
  return failure(Status::kGroupFile, "cannot use the group's file", path,
                 "[group] durability is \"disk\", but " + dir + " is in memory (tmpfs)",
                 "set state_dir to a directory on a disk");
}

// Saves the initial content of the server's lasting directories: this host's content when its first
// node of the group starts.  A host whose content differs from the leader's is reported by START.
Outcome take_data(const setup::GroupFile& f, const std::string& dir, Config& c) {
  if (f.data.empty()) return Done{};
  c.base = dir + "/base";
  std::error_code ignored;
  if (!std::filesystem::is_directory(c.base, ignored)) {
    if (auto p = setup::check_not_in_use(f.data, c.base); !p) return p;
    std::vector<checkpoint::LastingDirectory> directories;
    for (const auto& one : f.data) directories.push_back({one, one});
    if (const auto made = checkpoint::make_base(directories, c.base, checkpoint::Before::kStays);
        !made.ok()) {
      const bool full = made.error().code == Code::kFull;
      return failure(full ? Status::kDiskFull : Status::kDirectory,
                     "cannot take the content of [server] data", f.data[0], made.error().message(),
                     full ? "free space there" : "check that directory");
    }
  }
  for (const auto& one : f.data) {
    if (std::filesystem::is_directory(c.base + one, ignored)) continue;
    return failure(Status::kGroupFile, "cannot use the group's file", c.base,
                   "the group began without [server] data " + one,
                   "name the same directories as before, or begin a new group");
  }
  c.base_digest = checkpoint::digest_of_content(c.base);
  return Done{};
}

void fill(const setup::GroupFile& f, const setup::Profile& profile, Config& c) {
  static_cast<setup::NodeOptions&>(c) = setup::with_profile(f, profile);
  c.group = f.name;
  c.replicas = static_cast<std::uint8_t>(f.replicas.size());
  c.args.assign(f.command.begin() + 1, f.command.end());
  c.args.insert(c.args.end(), profile.args.begin(), profile.args.end());
  setup::become_user(profile, c.program, c.args);
  c.env = {kPath};
  set(c.env, profile.environment);
  set(c.env, f.env);
  std::sort(c.env.begin(), c.env.end());
  c.dirs = profile.directories;
  // Reading the group's file has checked the word.
  const bool known = setup::mode_of(f.mode, c.mode);
  CRANE_ASSERT(known);
  c.detach = profile.detach;
  c.detach.insert(c.detach.end(), f.detach.begin(), f.detach.end());
  c.soft_barriers =
      setup::chosen_soft_barriers(f.soft_barriers, profile, c.mode == dmt::Mode::kParallel);
  for (const auto* words : {&f.binds, &f.shared_binds}) {
    for (const auto& word : *words) c.binds.push_back(setup::parse_bind(word));
  }
  c.working_directory = f.working_directory;
  const bool alone = setup::cannot_recover(f.replicas.size(), f);
  if (alone) c.checkpoint_every_s = c.checkpoint_log_mb = 0;
  c.restart_checkpoints = !alone && f.restart_checkpoints;
  if (!c.restart_checkpoints) c.restart_every_s = 0;
}

}  // namespace

Outcome host_config(const std::string& path, int replica, setup::GroupDirectories& directories,
                    Config& config) {
  setup::GroupFile file;
  if (auto p = setup::read_group_file(path, file); !p) return p;
  if (replica < 0 || replica >= static_cast<int>(file.replicas.size())) {
    return failure(Status::kGroupFile, "no such replica", std::to_string(replica),
                   path + " has replicas 0 to " + std::to_string(file.replicas.size() - 1),
                   "name one of them with --replica");
  }
  setup::GroupKeys keys;
  if (auto p = setup::read_secret(file.secret_file, file.name, keys); !p) return p;
  setup::ProgramPaths parts;
  setup::Profile profile;
  if (auto p = setup::check_http_files(file); !p) return p;
  if (auto p = setup::find_program(file.command[0], config.program); !p) return p;
  if (auto p = setup::check_program(config.program); !p) return p;
  if (auto p = setup::find_programs(parts); !p) return p;
  if (auto p = choose_profile(file, path, config.program, profile); !p) return p;
  if (auto p = setup::check_machine(file.container, {}); !p) return p;
  const setup::GroupPlace place{file.name,   file.state_dir, static_cast<int>(file.replicas.size()),
                                file.record, false,          false,
                                file.ring_mb};
  if (auto p = directories.create_replica(place, replica); !p) return p;
  if (auto p = check_disk(file, path, directories.dir()); !p) return p;
  if (auto p = take_data(file, directories.dir(), config); !p) return p;
  fill(file, profile, config);
  const bool parallel = config.mode == dmt::Mode::kParallel;
  if (auto p = setup::check_branch_counter(config, parallel, config.detach); !p) return p;
  config.replica = static_cast<std::uint8_t>(replica);
  const setup::HostReplica& own = file.replicas[static_cast<std::size_t>(replica)];
  config.cpu = own.cpu;
  config.cpus = own.cpus;
  config.numa_node = own.numa_node;
  config.http_listen = setup::http_listen_of(file, own);
  config.http_pages = setup::http_pages_of(file);
  if (auto p = check_placement(path, config); !p) return p;
  config.dir = directories.dir();
  config.shm_dir = directories.shm_dir();
  config.libcrane = parts.library;
  config.log_id = keys.log_id;
  config.secret = keys.random;
  config.links = keys.links;
  config.host = std::move(file);
  return Done{};
}

// In memory mode the log of a restarted node continues where it was; what its server missed before
// is in a checkpoint or in the start of the log.  A new node that records runs all inputs if it
// can, because a recording holds the whole history.
void choose_starting_point(Config& c) {
  if (c.host->durability != "memory") return;
  const std::string number = std::to_string(c.replica);
  const bool was_here = std::filesystem::exists(c.dir + "/member-" + number) ||
                        std::filesystem::exists(c.consensus_dir() + "/r" + number);
  if (!c.record.empty() && !was_here) return;
  const auto kept = checkpoint::find_kept(c.dir).checkpoints;
  const std::string digest = checkpoint::digest_of_log(c.group, c.log_id);
  c.restore = c.may_begin = was_here || std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
                              return k.listed.belongs_to(digest);
                            });
}

void forget_group(const Config& c) {
  std::error_code ignored;
  const std::string directory = c.consensus_dir();
  const std::string number = std::to_string(c.replica);
  std::filesystem::remove_all(c.store_dir() + "/r" + number, ignored);
  std::filesystem::remove_all(c.dir + "/member-" + number, ignored);
  std::filesystem::remove_all(c.checkpoints_dir(), ignored);
  std::filesystem::remove(c.files_record(), ignored);
  if (c.host->fabric != "shm") {
    std::filesystem::remove_all(directory, ignored);
    return;
  }
  // All replicas of this machine share one directory.
  for (const char* own : {"/r", "/member-"}) {
    std::filesystem::remove_all(directory + own + number, ignored);
  }
}

}  // namespace crane::node
