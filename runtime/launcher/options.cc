// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "dmt/base/join.h"
#include "runtime/launcher/lasting.h"
#include "runtime/launcher/version.h"
#include "runtime/setup/analysis.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/option_words.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/soft_barrier.h"

namespace crane::launcher {
namespace {

constexpr int kReplicasMost = 9;

constexpr const char* kFooter =
    "Examples:\n"
    "  crane-run -- apache2                     three replicas of stock apache2\n"
    "  crane-run --publish 8080:80 -- apache2   its port 80 published as 8080\n"
    "  crane-run --no-container -n 3 -- memcached -p 11212\n"
    "  crane-run --data /var/lib/redis --durability disk -- redis-server redis.conf\n"
    "  crane-run --hosts h1,h2,h3 -- redis-server --port 7000   one replica on each host\n"
    "  crane-run --hosts h1,h2,h3 --name redis-server --stop\n"
    "  crane-run --name apache2 --stop          also where its crane-run was killed\n"
    "Exit status: the server's own; 100 and above are crane-run's (README: When it says).";

void declare_hosts(CLI::App& app, HostsOptions& o, std::string& hosts) {
  const auto over = [&](CLI::Option* option) { option->needs("--hosts"); };
  app.add_option("--hosts", hosts,
                 "h1,h2,h3: one replica on each, started through the remote shell; NAME=ADDRESS or "
                 "NAME=ADDRESS:PORT where the other replicas reach it otherwise");
  over(app.add_option("--fabric", o.fabric, "between the hosts: tcp (default) or verbs (RDMA)")
           ->check(CLI::IsMember({"tcp", "verbs"})));
  over(app.add_option("--on-follower", o.on_follower,
                      "forward (default) or refuse clients of a host that does not lead")
           ->check(CLI::IsMember({"forward", "refuse"})));
  over(app.add_option("--rsh", o.rsh,
                      "the remote shell; gets HOST, then a command (default: ssh, with keys)"));
  over(app.add_option("--remote-path", o.remote_path,
                      "crane-run on the hosts (default: where it lies here)"));
  over(app.add_option("--secret-file", o.secret_file,
                      "the group's secret (default: a new one; crane-ctl secret new FILE)"));
}

std::string profiles() { return joined(setup::profile_names()); }

// Where files of the group and of the server are.
void declare_places(CLI::App& app, Options& o) {
  app.add_option("--dir", o.dir,
                 "where the group's files live (default: " + setup::default_directory() +
                     "; with --data or --durability disk " + setup::lasting_directory() + ")");
  app.add_option("--bind", o.binds,
                 "DIR or SOURCE:TARGET, a directory of this machine in the containers; with :ro "
                 "behind it read-only, which several replicas need")
      ->allow_extra_args(false);
  app.add_option("--bind-shared", o.shared_binds,
                 "the same, and all replicas may write to it: they overwrite each other's files")
      ->allow_extra_args(false);
  app.add_option("--data", o.data,
                 "a directory that the server keeps its data in: each replica has its own, which "
                 "begins with what the machine's holds and is there again at the next start")
      ->allow_extra_args(false);
}

void declare(CLI::App& app, Options& o, std::vector<std::string>& publish, bool& no_pin) {
  app.add_option("-n,--replicas", o.replicas, "number of replicas, odd (default 3)");
  app.add_option("--spares", o.spares,
                 "places for replicas that crane-ctl member add or replace starts (default 0)")
      ->check(CLI::Range(0, kReplicasMost - 1));
  app.add_option("--analysis", o.analysis,
                 "helgrind or memcheck: one more replica, which never serves, runs the server in "
                 "this tool of valgrind and tells what it finds")
      ->check(CLI::IsMember({"helgrind", "memcheck"}));
  app.add_option("--analysis-dir", o.analysis_dir,
                 "where its report lies, and what it has not run yet (default: "
                 "/var/tmp/crane-analysis.NAME)")
      ->needs("--analysis");
  app.add_option("--analysis-spool-mb", o.analysis_spool_mb,
                 "how much of that it keeps at most (default 4096)")
      ->check(CLI::Range(1U, 1U << 20))
      ->needs("--analysis");
  app.add_option("--name", o.name, "name of the group (default: the program's)");
  app.add_option("--profile", o.profile, "the program's defaults: " + profiles());
  app.add_option("--publish", publish, "OURS:SERVERS, the port clients use for the server's port")
      ->allow_extra_args(false);
  app.add_option("--mode", o.mode, "serial or parallel (default: the profile's)")
      ->check(CLI::IsMember({"serial", "parallel"}));
  setup::declare_options(app, o);
  app.add_option("--detach", o.detach,
                 "nobody waits for these. computation: of a process with one thread and no shared "
                 "memory, after 1 ms; any-computation: of all")
      ->check(CLI::IsMember(setup::detach_names()))
      ->allow_extra_args(false);
  app.add_option("--soft-barrier", o.soft_barriers,
                 "FUNCTION:COUNT:TIMEOUT_US: callers of this exported function wait for each other")
      ->allow_extra_args(false);
  app.add_option("--ring-mb", o.ring_mb,
                 "memory for the log, per replica: 16, 32, ... 1024 (default 128)")
      ->check(CLI::IsMember({16U, 32U, 64U, 128U, 256U, 512U, 1024U}));
  app.add_option("--test-only-return-ms", o.test_only_return_ms)->group("");
  app.add_option("--test-only-flip", o.test_only_flip)->group("");
  app.add_flag("--trace", o.trace, "record every turn, too: crane-diff --schedule names the first");
  app.add_flag("--stop", o.stop,
               "stop the group of this --name, on this machine or its --hosts, whether a crane-run "
               "supervises it or not");
  app.add_flag("--force-new-group", o.force_new_group,
               "start over where a group of this name left something behind, which is given up");
  declare_places(app, o);
  app.add_flag("--no-pin", no_pin, "do not pin replicas to processors");
  app.add_option("--perturb", o.perturb, "random delays at turns, from this seed (for tests)");
  app.add_flag("-v,--verbose", o.verbose, "say what happens inside");
  app.add_option("program", o.program, "the server and its arguments, after --");
}

// What makes no sense, or not yet, for a group of several hosts.
Outcome check_hosts(const CLI::App& app, Options& o, const std::string& hosts) {
  if (auto p = setup::parse_hosts(hosts, o.remote.hosts); !p) return p;
  const int count = static_cast<int>(o.remote.hosts.size());
  if (app.count("--replicas") > 0 && o.replicas != count) {
    return failure(Status::kReplicas, "number of replicas", std::to_string(o.replicas),
                   std::to_string(count) + " hosts are named, with one replica each",
                   "leave -n out");
  }
  o.replicas = count;
  for (const char* option : {"--no-pin", "--perturb", "--trace", "--spares", "--analysis"}) {
    if (app.count(option) == 0) continue;
    return failure(Status::kUsage, "command line", option, "it is for replicas of one machine",
                   "leave it out with --hosts");
  }
  if (o.durability == "disk" && !o.remote.stop && (o.dir.empty() || o.remote.secret_file.empty())) {
    return failure(Status::kUsage, "--durability", "disk",
                   "what is to last needs a directory on a disk and the same secret at each start",
                   "add --dir DIR (on the hosts) and --secret-file FILE (crane-ctl secret new)");
  }
  if (!o.data.empty() && o.durability != "disk" && !o.remote.stop) {
    return failure(Status::kUsage, "--data", o.data[0],
                   "with several hosts it needs a log on disk, which brings it back on all of them",
                   "add --durability disk");
  }
  for (const auto& [option, path] : {std::pair{"--dir", o.dir}, std::pair{"--record", o.record}}) {
    if (path.empty() || path[0] == '/') continue;
    return failure(Status::kUsage, option, path, "other hosts are not where this one is",
                   "begin it with /");
  }
  return Done{};
}

// Who asks for checkpoints must be able to have them; who does not ask has them where they help.
Outcome choose_checkpoints(const CLI::App& app, Options& o) {
  for (const auto& [option, value] : {std::pair{"--checkpoint-every", &o.checkpoint_every_s},
                                      std::pair{"--checkpoint-log", &o.checkpoint_log_mb}}) {
    const bool asked = app.count(option) > 0;
    if (asked && *value != 0 && !o.container) {
      return failure(Status::kUsage, "command line", option,
                     "only a server in a container can be kept", "leave out --no-container");
    }
    const bool alone = o.replicas == 1 && app.count("--hosts") == 0 && !o.on_disk();
    if (!asked && (!o.container || alone)) *value = 0;
  }
  if (o.restart_checkpoints && !o.container) {
    return failure(Status::kUsage, "command line", "--restart-checkpoints",
                   "only the files of a server in a container can be kept",
                   "leave out --no-container");
  }
  // Only one of the two was asked for: the other one does not come along.
  if (app.count("--checkpoint-every") > 0 && app.count("--checkpoint-log") == 0) {
    o.checkpoint_log_mb = 0;
  }
  return Done{};
}

// Before anything is started: what is missing is said now, not by a replica that is gone at once.
Outcome check_analysis(Options& o) {
  if (setup::Valgrind found; !setup::find_valgrind(o.analysis, found)) {
    return failure(Status::kPartMissing, "--analysis", o.analysis, "valgrind is not installed",
                   "install the package valgrind");
  }
  if (o.analysis_dir.empty()) o.analysis_dir = "/var/tmp/crane-analysis." + o.name;
  std::error_code ignored;
  o.analysis_dir = std::filesystem::absolute(o.analysis_dir, ignored).lexically_normal().string();
  return Done{};
}

Outcome check(Options& o, const std::vector<std::string>& publish) {
  if (o.replicas < 1 || o.replicas % 2 == 0 || o.replicas > kReplicasMost) {
    return failure(Status::kReplicas, "number of replicas", std::to_string(o.replicas),
                   "a group needs an odd number, so that a majority is one",
                   "use 1, 3, 5, 7 or " + std::to_string(kReplicasMost));
  }
  if (o.places() > kReplicasMost) {
    return failure(Status::kReplicas, "number of replicas",
                   std::to_string(o.replicas) + " and " + std::to_string(o.places() - o.replicas) +
                       " places for others",
                   "a group has at most " + std::to_string(kReplicasMost) + " places", "use fewer");
  }
  for (const auto& text : publish) {
    std::pair<std::uint16_t, std::uint16_t> ports;
    if (!setup::parse_publish(text, ports)) {
      return failure(Status::kUsage, "--publish", text, "not a pair of ports",
                     "write it as 8080:80 (ours:the server's)");
    }
    o.publish.push_back(ports);
  }
  if (auto p = setup::check_soft_barriers(o.soft_barriers); !p) return p;
  if (o.trace && o.record.empty()) {
    return failure(Status::kUsage, "command line", "--trace", "there is no place for the turns",
                   "add --record DIR");
  }
  if (o.name.empty()) o.name = std::filesystem::path(o.program[0]).filename().string();
  if (!setup::good_group_name(o.name)) {
    return failure(Status::kUsage, "--name", o.name, "not a name for a group",
                   "use up to 32 letters, digits, '-', '_' and '.'");
  }
  if (!o.dir.empty() && o.remote.hosts.empty()) {
    std::error_code ignored;
    o.dir = std::filesystem::absolute(o.dir, ignored).lexically_normal().string();
  }
  if (auto p = resolve_data(o.data, o.container); !p) return p;
  if (auto p = setup::check_binds(o.binds, o.places(), Status::kUsage, "--bind"); !p) {
    return p;
  }
  if (!o.analysis.empty() && o.on_disk()) {
    return failure(
        Status::kUsage, "--analysis", o.analysis,
        "an analysis replica begins at the group's first entry, and a log on disk is cut",
        "leave one of the two out");
  }
  if (!o.analysis.empty()) return check_analysis(o);
  return Done{};
}

// Our words into `app`, the program and its words into `options`.  kRun: go on.
Parsed read_words(CLI::App& app, int argc, const char* const* argv, Options& options,
                  Outcome& problem_out) {
  // The server's own words are not ours to interpret: cut them off at the first "--".
  std::vector<const char*> ours(argv, argv + argc);
  const auto cut = std::find_if(ours.begin(), ours.end(),
                                [](const char* word) { return std::string("--") == word; });
  std::vector<std::string> theirs;
  if (cut != ours.end()) {
    theirs.assign(cut + 1, ours.end());
    ours.erase(cut, ours.end());
  }
  try {
    app.parse(static_cast<int>(ours.size()), ours.data());
  } catch (const CLI::CallForHelp&) {
    const std::string text = app.help();
    (void)!write(STDOUT_FILENO, text.data(), text.size());
    return Parsed::kShown;
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
    return Parsed::kShown;
  } catch (const CLI::ParseError& error) {
    problem_out =
        failure(Status::kUsage, "command line", "crane-run", error.what(), "see crane-run --help");
    return Parsed::kProblem;
  }
  for (const auto& word : app.remaining()) options.program.push_back(word);
  if (!options.program.empty() && options.program[0].rfind('-', 0) == 0) {
    problem_out = failure(Status::kUsage, "command line", options.program[0], "no such option",
                          "see crane-run --help; the server's own words go after --");
    return Parsed::kProblem;
  }
  options.program.insert(options.program.end(), theirs.begin(), theirs.end());
  return Parsed::kRun;
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv, Options& options, Outcome& problem_out) {
  CLI::App app{"Runs an unmodified server as a group of replicas that clients see as one."};
  app.name("crane-run");
  app.set_version_flag("--version", version_of_launcher());
  app.footer(kFooter);
  app.prefix_command();  // what follows the program belongs to the program
  std::vector<std::string> publish;
  std::string hosts;
  bool no_pin = false;
  declare(app, options, publish, no_pin);
  declare_hosts(app, options.remote, hosts);
  if (const Parsed read = read_words(app, argc, argv, options, problem_out); read != Parsed::kRun) {
    return read;
  }
  options.words.assign(argv + 1, argv + argc);
  options.remote.stop = options.stop && app.count("--hosts") > 0;
  options.pin = !no_pin;
  if (problem_out = choose_checkpoints(app, options); !problem_out) {
    return Parsed::kProblem;
  }
  if (app.count("--hosts") > 0) {
    if (problem_out = check_hosts(app, options, hosts); !problem_out) {
      return Parsed::kProblem;
    }
  }
  if (options.program.empty() && options.stop && !options.name.empty()) {
    options.program.push_back(options.name);
  }
  if (options.program.empty()) {
    problem_out = failure(Status::kUsage, "command line", "crane-run", "no program is given",
                          "write it after --, as in: crane-run -- apache2");
    return Parsed::kProblem;
  }
  problem_out = check(options, publish);
  return problem_out.ok() ? Parsed::kRun : Parsed::kProblem;
}

}  // namespace crane::launcher
