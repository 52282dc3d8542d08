// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/options.h"

#include <filesystem>
#include <iterator>
#include <string_view>

#include "dmt/base/ipv4_prefix.h"
#include "dmt/base/join.h"
#include "runtime/launcher/lasting.h"
#include "runtime/launcher/version.h"
#include "runtime/setup/address.h"
#include "runtime/setup/analysis.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/http.h"
#include "runtime/setup/http_access.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/option_words.h"
#include "runtime/setup/outbound.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/soft_barrier.h"

namespace crane::launcher {
namespace {

using setup::CommandLine;

constexpr int kReplicasMost = 9;

constexpr const char* kFooter =
    "Examples:\n"
    "  crane-run -- apache2                     three replicas of stock apache2\n"
    "  crane-run --publish 8080:80 -- apache2   its port 80 published as 8080\n"
    "  crane-run --no-container -n 3 -- memcached -p 11212\n"
    "  crane-run --data /var/lib/redis --durability disk -- redis-server redis.conf\n"
    "  crane-run --hosts h1,h2,h3 -- redis-server --port 7000   one replica on each host\n"
    "  crane-run --hosts h1,h2,h3 --name redis-server --stop\n"
    "  crane-run --detach -- apache2            returns when the group serves\n"
    "  crane-run --name apache2 --stop          also if its crane-run was killed\n"
    "  crane-run doctor                         checks whether this machine can run groups\n"
    "Exit status: the server's own; 100 and above are crane-run's (REFERENCE.md: Exit status).";

using setup::Word;

void add(std::vector<Word>& words, std::vector<Word> more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::vector<Word> host_words(HostsOptions& o, std::string& hosts) {
  const std::vector<const char*> hosted = {"--hosts"};
  return {
      {"--hosts", &hosts,
       "h1,h2,h3: one replica on each, started through the remote shell; NAME=ADDRESS or "
       "NAME=ADDRESS:PORT if the other replicas use another address"},
      {"--fabric",
       &o.fabric,
       "between the hosts: tcp (default) or verbs (RDMA)",
       {.choices = {"tcp", "verbs"}, .needs = hosted}},
      {"--on-follower",
       &o.on_follower,
       "forward (default) or refuse clients of a host that does not lead",
       {.choices = {"forward", "refuse"}, .needs = hosted}},
      {"--virtual-ip",
       &o.virtual_ip,
       "ADDRESS/BITS (IPv4) that moves with the lead: its clients keep their connections when a "
       "host is lost",
       {.needs = {"--hosts", "--interface"}}},
      {"--interface",
       &o.interface,
       "its network interface on every host, such as eth0",
       {.needs = {"--hosts", "--virtual-ip"}}},
      {"--rsh",
       &o.rsh,
       "the remote shell; gets HOST, then a command (default: ssh, with keys)",
       {.needs = hosted}},
      {"--remote-path",
       &o.remote_path,
       "path of crane-run on the hosts (default: as on this machine)",
       {.needs = hosted}},
      {"--secret-file",
       &o.secret_file,
       "the group's secret (default: a new one; crane-ctl secret new FILE)",
       {.needs = hosted}},
  };
}

std::string profiles() { return joined(setup::profile_names()); }

// Options for the directories of the group and of the server.
std::vector<Word> place_words(Options& o) {
  return {
      {"--dir", &o.dir,
       "directory of the group's files (default: " + setup::default_directory() +
           "; with --data or --durability disk " + setup::lasting_directory() + ")"},
      {"--bind", &o.binds,
       "DIR or SOURCE:TARGET, a directory of this machine that containers see; append :ro for "
       "read-only, which several replicas need"},
      {"--bind-shared", &o.shared_binds,
       "the same, and all replicas may write to it: they overwrite each other's files"},
      {"--data", &o.data,
       "a directory with the server's data: each replica has its own copy, which begins with the "
       "machine's content and is kept for the next start"},
  };
}

std::vector<Word> group_words(Options& o, std::vector<std::string>& publish) {
  return {
      {"-n,--replicas", &o.replicas, "number of replicas, odd (default {})"},
      {"--spares",
       &o.spares,
       "slots for replicas that crane-ctl member add or replace starts (default {})",
       {.bounds = {{0, kReplicasMost - 1}}}},
      {"--analysis",
       &o.analysis,
       "helgrind or memcheck: one more replica, which never serves, runs the server in this tool "
       "of valgrind and reports its findings",
       {.choices = {"helgrind", "memcheck"}}},
      {"--analysis-dir",
       &o.analysis_dir,
       "directory of its report, and of inputs that it has not run yet (default: "
       "/var/tmp/crane-analysis.NAME)",
       {.needs = {"--analysis"}}},
      {"--analysis-spool-mb",
       &o.analysis_spool_mb,
       "limit for the size of these inputs (default {})",
       {.bounds = {{1, 1 << 20}}, .needs = {"--analysis"}}},
      {"--name", &o.name, "name of the group (default: the program's)"},
      {"--profile", &o.profile, "the program's defaults: " + profiles()},
      {"--publish", &publish,
       "OURS:SERVERS, the port that clients use for the server's port; with it, clients reach no "
       "other ports"},
      {"--http", &o.http,
       "PORT or ADDRESS:PORT: metrics (/metrics), health (/health, /leader, ...) and a page (/) of "
       "replica 0, on 127.0.0.1 unless an address is given; replica i uses PORT + i, several hosts "
       "use the same PORT"},
      {"--mode", &o.mode, "serial (default) or parallel", {.choices = {"serial", "parallel"}}},
  };
}

std::vector<Word> server_words(Options& o) {
  return {
      {"--detach",
       &o.detach,
       "other threads do not wait for this. computation: after 1 ms, in a process with one thread "
       "and no shared memory; any-computation: in all threads",
       {.choices = setup::detach_names()}},
      {"--soft-barrier", &o.soft_barriers,
       "FUNCTION:COUNT:TIMEOUT_US: callers of this exported function wait for each other"},
      {"--ring-mb",
       &o.ring_mb,
       "memory for the log, per replica: 16, 32, ... 1024 (default 128)",
       {.choices = {"16", "32", "64", "128", "256", "512", "1024"}}},
      {"--test-only-return-ms", &o.test_only_return_ms, ""},
      {"--test-only-flip", &o.test_only_flip, ""},
      {"--trace", Word::Flag{&o.trace},
       "record every turn, too, so that crane-diff --schedule names the first that differs"},
      {"--stop", Word::Flag{&o.stop},
       "stop the group of this --name, on this machine or its --hosts, whether a crane-run "
       "supervises it or not"},
      {"--background",
       Word::Flag{&o.background},
       "return when the group serves, and leave it running in the background; --detach without a "
       "value is the same. crane-ctl logs, attach and stop are for such a group",
       {.excludes = {"--stop"}}},
      {"--dry-run",
       Word::Flag{&o.dry_run},
       "make all checks and print what would be done; start and write nothing",
       {.excludes = {"--stop"}}},
      {"--force-new-group", Word::Flag{&o.force_new_group},
       "start over, and give up what an earlier group of this name left"},
  };
}

std::vector<Word> words_of(Options& o, std::vector<std::string>& publish, std::string& hosts) {
  std::vector<Word> words = group_words(o, publish);
  add(words, setup::option_words(o));
  add(words, server_words(o));
  add(words, place_words(o));
  add(words, {{"--no-pin", Word::Flag{&o.pin, false}, "do not pin replicas to processors"},
              {"--perturb", &o.perturb, "random delays at turns, from this seed (for tests)"},
              {"-q,--quiet", Word::Flag{&o.quiet}, "do not show how far a long step is"},
              {"-v,--verbose", Word::Flag{&o.verbose}, "print internal details"},
              {"program", &o.program, "the server and its arguments, after --"}});
  add(words, host_words(o.remote, hosts));
  return words;
}

setup::Command doctor_command(DoctorOptions& o, std::vector<std::string>& ports) {
  return {"doctor",
          "checks whether this machine can run groups; 0: yes, 1: with limits, 2: no",
          {{"--dir", &o.dir, "directory of the group's files (default: as above)"},
           {"--port", &ports, "a port that clients would use; may be repeated"},
           {"-n,--replicas",
            &o.replicas,
            "replicas of the group on this machine (default {})",
            {.bounds = {{1, kReplicasMost}}}},
           {"--ring-mb",
            &o.ring_mb,
            "memory for the log, per replica (default {})",
            {.bounds = {{16, 1024}}}},
           {"-o,--output", &o.output, "table or json", {.choices = {"table", "json"}}}}};
}

Outcome read_ports(const std::vector<std::string>& texts, std::vector<std::uint16_t>& ports) {
  for (const auto& text : texts) {
    std::uint16_t port = 0;
    if (!setup::parse_port(text, port)) {
      return failure(Status::kUsage, "--port", text, "is not a port", "use 1 to 65535");
    }
    ports.push_back(port);
  }
  return Done{};
}

// Refuses options that make no sense, or are not supported, for a group of several hosts.
Outcome check_hosts(const CommandLine& line, Options& o, const std::string& hosts) {
  if (auto p = setup::parse_hosts(hosts, o.remote.hosts); !p) return p;
  const int count = static_cast<int>(o.remote.hosts.size());
  if (line.typed("--replicas") && o.replicas != count) {
    return failure(Status::kReplicas, "number of replicas", std::to_string(o.replicas),
                   std::to_string(count) + (count == 1 ? " host is" : " hosts are") +
                       " named, with one replica each",
                   "leave -n out");
  }
  o.replicas = count;
  for (const char* option :
       {"--no-pin", "--perturb", "--trace", "--spares", "--analysis", "--background"}) {
    if (!line.typed(option)) continue;
    return failure(Status::kUsage, "command line", option, "it is for replicas of one machine",
                   "leave it out with --hosts");
  }
  const std::string& address = o.remote.virtual_ip;
  if (!address.empty() && !parse_ipv4_prefix(address)) {
    return failure(Status::kUsage, "--virtual-ip", address,
                   "is not an IPv4 address with a prefix length", "write it as 192.0.2.9/24");
  }
  if (o.durability == "disk" && !o.remote.stop && (o.dir.empty() || o.remote.secret_file.empty())) {
    return failure(Status::kUsage, "--durability", "disk",
                   "lasting data need a directory on a disk and the same secret at each start",
                   "add --dir DIR (on the hosts) and --secret-file FILE (crane-ctl secret new)");
  }
  if (!o.data.empty() && o.durability != "disk" && !o.remote.stop) {
    return failure(Status::kUsage, "--data", o.data[0],
                   "with several hosts it needs a log on disk, which restores it on all of them",
                   "add --durability disk");
  }
  for (const auto& [option, path] : {std::pair{"--dir", o.dir}, std::pair{"--record", o.record}}) {
    if (path.empty() || path[0] == '/') continue;
    return failure(Status::kUsage, option, path, "a relative path has no meaning on other hosts",
                   "begin it with /");
  }
  return Done{};
}

// If the user requested checkpoints, they must be possible.  Otherwise Crane takes them if they
// help.
Outcome choose_checkpoints(const CommandLine& line, Options& o) {
  for (const auto& [option, value] : {std::pair{"--checkpoint-every", &o.checkpoint_every_s},
                                      std::pair{"--checkpoint-log", &o.checkpoint_log_mb}}) {
    const bool asked = line.typed(option);
    if (asked && *value != 0 && !o.container) {
      return failure(Status::kUsage, "command line", option,
                     "only a server in a container can have checkpoints",
                     "leave out --no-container");
    }
    const bool alone =
        !line.typed("--hosts") && setup::cannot_recover(static_cast<std::size_t>(o.replicas), o);
    if (!asked && (!o.container || alone)) *value = 0;
  }
  if (o.restart_checkpoints && !o.container) {
    return failure(Status::kUsage, "command line", "--restart-checkpoints",
                   "only a server in a container can have checkpoints", "leave out --no-container");
  }
  // If only --checkpoint-every was given, the default of --checkpoint-log does not apply.
  if (line.typed("--checkpoint-every") && !line.typed("--checkpoint-log")) {
    o.checkpoint_log_mb = 0;
  }
  return Done{};
}

// Checks before the start what an analysis replica needs; otherwise the replica would end at once.
Outcome check_analysis(Options& o) {
  if (o.branch_counter) {
    return failure(Status::kNoBranchCounter, "--analysis", o.analysis,
                   "valgrind's processor has no branch counter", "leave out --branch-counter");
  }
  if (setup::Valgrind found; !setup::find_valgrind(o.analysis, found)) {
    return failure(Status::kPartMissing, "--analysis", o.analysis, "valgrind is not installed",
                   "install the package valgrind");
  }
  if (o.analysis_dir.empty()) o.analysis_dir = "/var/tmp/crane-analysis." + o.name;
  std::error_code ignored;
  o.analysis_dir = std::filesystem::absolute(o.analysis_dir, ignored).lexically_normal().string();
  return Done{};
}

Outcome check_replicas(const Options& o) {
  if (o.replicas < 1 || o.replicas % 2 == 0 || o.replicas > kReplicasMost) {
    return failure(Status::kReplicas, "number of replicas", std::to_string(o.replicas),
                   "a group needs an odd number of replicas",
                   "use 1, 3, 5, 7 or " + std::to_string(kReplicasMost));
  }
  if (o.places() > kReplicasMost) {
    return failure(Status::kReplicas, "number of replicas",
                   std::to_string(o.replicas) + " and " + std::to_string(o.places() - o.replicas) +
                       " places for others",
                   "a group has at most " + std::to_string(kReplicasMost) + " places", "use fewer");
  }
  return Done{};
}

// For the nodes, whose working directory is another one.
void make_absolute(std::string& path) {
  std::error_code ignored;
  if (!path.empty()) path = std::filesystem::absolute(path, ignored).lexically_normal().string();
}

Outcome check(Options& o, const std::vector<std::string>& publish) {
  if (auto p = check_replicas(o); !p) return p;
  for (const auto& text : publish) {
    if (const char* wrong = setup::add_publish(text, o.publish); wrong != nullptr) {
      return failure(Status::kUsage, "--publish", text, wrong,
                     "write it as 8080:80 (ours:the server's), 192.0.2.1:8080:80 or "
                     "[2001:db8::7]:8080:80, each port once");
    }
  }
  if (auto p = setup::check_soft_barriers(o.soft_barriers); !p) return p;
  if (auto p = setup::check_outbound(o.outbound); !p) return p;
  if (auto p = setup::check_resolver(o.resolver); !p) return p;
  const int here = o.remote.hosts.empty() ? o.places() : 1;
  if (auto p = setup::check_http(o.http, here); !p) return p;
  if (o.remote.hosts.empty()) {
    for (std::string* path : {&o.dir, &o.http_certificate, &o.http_key, &o.http_users}) {
      make_absolute(*path);
    }
  }
  if (auto p = setup::check_http_access(o.http, o); !p) return p;
  if (auto p = setup::check_http_apart(o.http, here, o.publish, o.program); !p) return p;
  if (o.trace && o.record.empty()) {
    return failure(Status::kUsage, "command line", "--trace", "the turns need a directory",
                   "add --record DIR");
  }
  if (o.name.empty()) o.name = std::filesystem::path(o.program[0]).filename().string();
  if (!setup::good_group_name(o.name)) {
    return failure(Status::kUsage, "--name", o.name, "not a name for a group",
                   "use up to 32 letters, digits, '-', '_' and '.'");
  }
  if (auto p = resolve_data(o.data, o.container); !p) return p;
  if (auto p = setup::check_binds(o.binds, o.places(), Status::kUsage, "--bind"); !p) {
    return p;
  }
  if (o.remote.hosts.empty()) {
    if (auto p = setup::check_bind_sources(o.binds, "--bind"); !p) return p;
    if (auto p = setup::check_bind_sources(o.shared_binds, "--bind-shared"); !p) return p;
  }
  if (!o.analysis.empty() && o.on_disk()) {
    return failure(
        Status::kUsage, "--analysis", o.analysis,
        "an analysis replica begins at the group's first entry, but a log on disk is cut",
        "leave one of the two out");
  }
  if (!o.analysis.empty()) return check_analysis(o);
  return Done{};
}

// The words, with --background in place of a --detach without a value.  With a value, --detach is
// about the server's threads.
std::vector<const char*> with_background(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size() && std::string_view(words[i]) != "--"; ++i) {
    const bool ends = i + 1 == words.size() || words[i + 1][0] == '-';
    if (ends && std::string_view(words[i]) == "--detach") words[i] = "--background";
  }
  return words;
}

// Reads crane-run's own words into the options that `line` names.  kRun: continue.
Parsed read_words(CommandLine& line, int argc, const char* const* argv, Outcome& problem_out) {
  switch (line.parse(argc, argv)) {
    case CommandLine::Parsed::kRun:
      return Parsed::kRun;
    case CommandLine::Parsed::kShown:
      return Parsed::kShown;
    case CommandLine::Parsed::kMistake:
      break;
  }
  problem_out = failure(Status::kUsage, "command line", "crane-run", line.mistake(),
                        "see crane-run --help; the server's own words go after --");
  return Parsed::kProblem;
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv, Options& options, Outcome& problem_out) {
  std::vector<std::string> publish, ports;
  std::string hosts;
  const setup::Program program{
      {"crane-run",
       "Runs an unmodified server as a group of replicas that clients see as one.",
       words_of(options, publish, hosts),
       {doctor_command(options.doctor, ports)}},
      version_of_launcher(),
      kFooter,
      true};
  CommandLine line(program);
  const std::vector<const char*> words = with_background(argc, argv);
  if (const Parsed read = read_words(line, argc, words.data(), problem_out); read != Parsed::kRun) {
    return read;
  }
  if (line.command() != nullptr) {
    options.doctor.typed = true;
    problem_out = read_ports(ports, options.doctor.ports);
    return problem_out.ok() ? Parsed::kRun : Parsed::kProblem;
  }
  options.program = line.rest();
  options.words.assign(words.begin() + 1, words.end());
  options.remote.stop = options.stop && line.typed("--hosts");
  if (problem_out = choose_checkpoints(line, options); !problem_out) {
    return Parsed::kProblem;
  }
  if (line.typed("--hosts")) {
    if (problem_out = check_hosts(line, options, hosts); !problem_out) {
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
