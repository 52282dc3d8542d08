// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/node_setup.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dmt/base/assert.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/http.h"
#include "runtime/setup/node_fields.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr int kControlFd = 3;

std::uint64_t random_word() {
  std::uint64_t word = 0;
  while (getrandom(&word, sizeof word, 0) != sizeof word) {
  }
  return word;
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

// The caller's environment without Crane's and the loader's variables, overridden by the profile's.
std::vector<std::string> environment(const Profile& profile) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name = name_of(*variable);
    if (name.compare(0, 6, "CRANE_") == 0 || name == "LD_PRELOAD" || name == "HOSTNAME") continue;
    bool replaced = false;
    for (const auto& word : profile.environment) replaced = replaced || name_of(word) == name;
    if (!replaced) all.emplace_back(*variable);
  }
  all.insert(all.end(), profile.environment.begin(), profile.environment.end());
  return all;
}

// A hash of a small number, so that a perturbed run draws the same values for the same seed.
std::uint64_t mixed(std::uint64_t x) {
  x = (x + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
  return (x ^ (x >> 29)) * 0x94D049BB133111EB >> 16;
}

// The processor of a replica: the first to the likely first leader, the rest to the others
// (DESIGN D10). -1: none.
int processor_of(const Options& options, int replica) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (!options.pin || options.mode != "serial" || sched_getaffinity(0, sizeof set, &set) != 0) {
    return -1;
  }
  std::vector<int> cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) cpus.push_back(i);
  }
  if (cpus.empty()) return -1;
  if (options.perturb != 0) {  // any processor, or none: results must not depend on it
    const auto draw = mixed(options.perturb + static_cast<unsigned>(replica)) % (cpus.size() + 1);
    return draw == cpus.size() ? -1 : cpus[draw];
  }
  if (replica == 0 || cpus.size() == 1) return cpus[0];
  const auto others = cpus.size() - 1;
  return cpus[1 + (static_cast<std::size_t>(replica) - 1) % others];
}

// The server's working directory: the present one, unless its container cannot see it because it is
// on another file system than the root.
std::string working_directory(const Options& options) {
  std::error_code unreadable;
  const std::string here = std::filesystem::current_path(unreadable).string();
  struct stat mine {
  }, root{};
  if (unreadable || stat(here.c_str(), &mine) != 0 || stat("/", &root) != 0) return "/";
  return options.container && mine.st_dev != root.st_dev ? "/" : here;
}

std::vector<setup::Bind> binds_of(const Options& options) {
  std::vector<setup::Bind> binds;
  for (const auto* words : {&options.binds, &options.shared_binds}) {
    for (const auto& word : *words) binds.push_back(setup::parse_bind(word));
  }
  return binds;
}

// The HTTP address of each replica; empty: no replica answers HTTP.
std::vector<std::string> http_pages_of(const Options& options) {
  std::vector<std::string> all;
  for (int replica = 0; !options.http.empty() && replica < options.places(); ++replica) {
    all.push_back(setup::http_of_replica(options.http, replica));
  }
  return all;
}

bool restores(const supervise::Plan& plan) {
  using From = supervise::Plan::From;
  return plan.from == From::kCheckpoint || plan.from == From::kLog;
}

void fill_begin(const supervise::Plan& plan, setup::NodeFields& f) {
  f.restore = restores(plan);
  f.checkpoint = plan.checkpoint;
  f.may_begin = f.restore && plan.checkpoint.empty();
  f.skip_checkpoints = plan.from == supervise::Plan::From::kLog;
  f.forget = plan.forgets;
}

void fill_server(const NodeSetup& s, setup::NodeFields& f) {
  f.program = s.program;
  f.args.assign(s.options.program.begin() + 1, s.options.program.end());
  f.args.insert(f.args.end(), s.profile.args.begin(), s.profile.args.end());
  setup::become_user(s.profile, f.program, f.args);
  f.env = environment(s.profile);
  f.dirs = s.profile.directories;
  f.working_directory = working_directory(s.options);
  f.binds = binds_of(s.options);
  f.base = s.options.data.empty() ? "" : s.dir + "/base";
  f.keeps_files = s.keeps_files;
  f.leaves_files = s.options.container && !s.options.on_disk();
  CRANE_ASSERT(setup::mode_of(s.options.mode, f.mode));  // the command line allows no other word
  f.detach = s.profile.detach;
  f.detach.insert(f.detach.end(), s.options.detach.begin(), s.options.detach.end());
  f.soft_barriers = setup::chosen_soft_barriers(s.options.soft_barriers, s.profile,
                                                f.mode == dmt::Mode::kParallel);
}

std::vector<int> processors_of(const NodeSetup& s) {
  std::vector<int> all;
  for (int replica = 0; replica < s.options.replicas; ++replica) {
    all.push_back(processor_of(s.options, replica));
  }
  return all;
}

}  // namespace

std::string node_configuration(const NodeSetup& s) {
  const Options& o = s.options;
  setup::NodeFields f;
  static_cast<setup::NodeOptions&>(f) = setup::with_profile(o, s.profile);
  if (!f.record.empty()) f.record = std::filesystem::absolute(f.record).string();
  f.group = o.name;
  f.replica = static_cast<std::uint8_t>(s.replica);
  f.replicas = static_cast<std::uint8_t>(o.places());
  f.members = static_cast<std::uint8_t>(o.replicas);
  f.dir = s.dir;
  f.shm_dir = s.shm_dir;
  f.libcrane = s.parts.library;
  f.log_id = std::stoull(s.log_id);
  CRANE_ASSERT(s.secret.empty() || setup::secret_of(s.secret, f.secret));
  fill_server(s, f);
  const bool analyses = s.replica == o.analysis_place();
  f.cpu = analyses ? -1 : processor_of(o, s.replica);
  f.server_cpus = processors_of(s);
  f.ring_bytes = std::uint64_t{o.ring_mb} << 20;
  f.http_listen = setup::http_of_replica(o.http, s.replica);
  f.http_pages = http_pages_of(o);
  fill_begin(s.plan, f);
  f.analysis_replica = o.analysis_place();
  f.analysis = analyses ? o.analysis : "";
  f.analysis_dir = o.analysis_dir;
  f.analysis_spool_mb = o.analysis_spool_mb;
  // Each replica must be perturbed differently.
  if (o.perturb != 0) f.perturb = o.perturb * 100 + static_cast<unsigned>(s.replica);
  f.trace = o.trace;
  f.test_only_flip = o.test_only_flip == s.replica && !f.restore;
  Json json;
  setup::write_fields(f, setup::Fields::kAll, json);
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> environment_of_process() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

void restore_environment(const std::vector<std::string>& environment,
                         const std::string& directory) {
  clearenv();
  for (const auto& variable : environment) {
    const auto equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  std::error_code ignored;
  std::filesystem::current_path(directory, ignored);
}

std::string random_log_id() { return std::to_string(random_word() | 1); }

std::string random_secret() {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random_word()));
    text += digits;
  }
  return text;
}

Outcome write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int why = errno;
  if (fd >= 0) close(fd);
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return Done{};
  unlink(fresh.c_str());
  const bool full = why == ENOSPC || why == EDQUOT;
  return failure(full ? Status::kDiskFull : Status::kDirectory, "cannot write", path, strerror(why),
                 full ? "free space there" : "name another directory with --dir");
}

pid_t spawn_node(const std::string& program, const std::string& config, int channel,
                 const std::string& log) {
  const std::string fd_number = std::to_string(kControlFd);
  const pid_t child = fork();
  if (child != 0) return child;
  setsid();  // Ctrl-C and the end of the terminal are for crane-run only
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGHUP, SIG_DFL);  // servers of all replicas begin alike, also under nohup
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  if (!log.empty()) {
    const int out = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(out >= 0 ? out : nothing, 1);
    dup2(out >= 0 ? out : nothing, 2);
  }
  if (channel == kControlFd) {
    fcntl(channel, F_SETFD, 0);
  } else {
    dup2(channel, kControlFd);
  }
  close_range(kControlFd + 1, ~0U, 0);
  execl(program.c_str(), program.c_str(), "--control-fd", fd_number.c_str(), "--config",
        config.c_str(), static_cast<char*>(nullptr));
  _exit(126);
}

}  // namespace crane::launcher
