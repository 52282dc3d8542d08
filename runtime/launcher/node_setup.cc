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

#include "runtime/setup/bind.h"
#include "runtime/setup/http.h"
#include "runtime/setup/option_json.h"

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

// The caller's environment, with the profile's words over it; nothing of Crane or the loader.
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

// A well-mixed word of a small number: what a perturbed run draws is the same for the same seed.
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
  if (options.perturb != 0) {  // anywhere, also nowhere in particular: nothing may depend on it
    const auto draw = mixed(options.perturb + static_cast<unsigned>(replica)) % (cpus.size() + 1);
    return draw == cpus.size() ? -1 : cpus[draw];
  }
  if (replica == 0 || cpus.size() == 1) return cpus[0];
  const auto others = cpus.size() - 1;
  return cpus[1 + (static_cast<std::size_t>(replica) - 1) % others];
}

// Where the server starts: here, unless its container would not see this directory (another file
// system than the root's).
std::string working_directory(const Options& options) {
  std::error_code unreadable;
  const std::string here = std::filesystem::current_path(unreadable).string();
  struct stat mine {
  }, root{};
  if (unreadable || stat(here.c_str(), &mine) != 0 || stat("/", &root) != 0) return "/";
  return options.container && mine.st_dev != root.st_dev ? "/" : here;
}

Json binds_of(const Options& options) {
  Json binds = Json::array();
  for (const auto* words : {&options.binds, &options.shared_binds}) {
    for (const auto& word : *words) {
      const setup::Bind bind = setup::parse_bind(word);
      binds.push_back(
          {{"source", bind.source}, {"target", bind.target}, {"read_only", bind.read_only}});
    }
  }
  return binds;
}

// By replica, where it answers HTTP; empty: none does.
Json http_pages_of(const Options& options) {
  Json all = Json::array();
  for (int replica = 0; !options.http.empty() && replica < options.places(); ++replica) {
    all.push_back(setup::http_of_replica(options.http, replica));
  }
  return all;
}

Json soft_barriers_of(const NodeSetup& s) {
  Json all = Json::array();
  const bool parallel = s.options.mode == "parallel";
  for (const auto& l : setup::chosen_soft_barriers(s.options.soft_barriers, s.profile, parallel)) {
    all.push_back({{"point", setup::text_of(l)}, {"origin", l.origin}});
  }
  return all;
}

bool restores(const supervise::Plan& plan) {
  using From = supervise::Plan::From;
  return plan.from == From::kCheckpoint || plan.from == From::kLog;
}

// What the node's replica begins with.
Json begin_of(const supervise::Plan& plan) {
  return Json{{"restore", restores(plan)},
              {"checkpoint", plan.checkpoint},
              {"may_begin", restores(plan) && plan.checkpoint.empty()},
              {"skip_checkpoints", plan.from == supervise::Plan::From::kLog},
              {"forget", plan.forgets}};
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
  std::vector<std::string> args(s.options.program.begin() + 1, s.options.program.end());
  args.insert(args.end(), s.profile.args.begin(), s.profile.args.end());
  std::string program = s.program;
  setup::become_user(s.profile, program, args);
  std::vector<std::string> detach = s.profile.detach;
  detach.insert(detach.end(), s.options.detach.begin(), s.options.detach.end());
  // Each replica is perturbed in its own way: that is the point.
  const std::uint64_t perturb =
      s.options.perturb == 0 ? 0 : s.options.perturb * 100 + static_cast<unsigned>(s.replica);
  setup::NodeOptions told = setup::with_profile(s.options, s.profile);
  if (!told.record.empty()) told.record = std::filesystem::absolute(told.record).string();
  const bool analyses = s.replica == s.options.analysis_place();
  Json json{{"group", s.options.name},
            {"replica", s.replica},
            {"replicas", s.options.places()},
            {"members", s.options.replicas},
            {"ring_bytes", std::uint64_t{s.options.ring_mb} << 20},
            {"dir", s.dir},
            {"shm_dir", s.shm_dir},
            {"program", program},
            {"args", args},
            {"env", environment(s.profile)},
            {"dirs", s.profile.directories},
            {"mode", s.options.mode},
            {"detach", detach},
            {"line_ups", soft_barriers_of(s)},
            {"trace", s.options.trace},
            {"test_only_flip", s.options.test_only_flip == s.replica && !restores(s.plan)},
            {"analysis_replica", s.options.analysis_place()},
            {"analysis", analyses ? s.options.analysis : ""},
            {"analysis_dir", s.options.analysis_dir},
            {"analysis_spool_mb", s.options.analysis_spool_mb},
            {"binds", binds_of(s.options)},
            {"http_listen", setup::http_of_replica(s.options.http, s.replica)},
            {"http_pages", http_pages_of(s.options)},
            {"base", s.options.data.empty() ? "" : s.dir + "/base"},
            {"keeps_files", s.keeps_files},
            {"leaves_files", s.options.container && !s.options.on_disk()},
            {"libcrane", s.parts.library},
            {"perturb", perturb},
            {"cpu", analyses ? -1 : processor_of(s.options, s.replica)},
            {"server_cpus", processors_of(s)},
            {"log_id", std::stoull(s.log_id)},
            {"secret", s.secret},
            {"working_directory", working_directory(s.options)}};
  setup::write_options(told, json);
  json.update(begin_of(s.plan));
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
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
  setsid();  // Ctrl-C is for crane-run, and the end of its terminal
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
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
