// SPDX-License-Identifier: Apache-2.0
// crane-ctl: the operator's tool.  Shows this machine's groups, or a group of other hosts, and
// sends requests to their nodes.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "runtime/control/answers.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/version.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/progress_line.h"
#include "runtime/setup/secret.h"

namespace {

using namespace crane::launcher;
using crane::setup::Command;
using crane::setup::CommandLine;
using crane::setup::print_message;
using crane::setup::Word;

// The number of "HUP", "SIGHUP" or "1"; 0 if there is no such signal or no program can handle it.
int signal_number(const std::string& name) {
  const std::string brief = name.compare(0, 3, "SIG") == 0 ? name.substr(3) : name;
  for (int s = 1; s < SIGSYS; ++s) {
    const char* known = sigabbrev_np(s);
    if (s == SIGKILL || s == SIGSTOP || known == nullptr) continue;
    if (brief == known || name == std::to_string(s)) return s;
  }
  return 0;
}

int send_signal(const Request& request) {
  const int signo = signal_number(request.signal);
  if (signo == 0) {
    print_message("command line: crane-ctl: " + request.signal +
                  " names no signal that a server can handle; for example HUP");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  return ask_leader(request, {{"do", "signal"}, {"signo", signo}});
}

int make_secret(const Request& request) {
  const auto problem = crane::setup::make_secret(request.secret);
  if (!problem) {
    print_message(problem.error().text);
    return problem.error().exit_status;
  }
  print("made " + request.secret + "; copy it to every host of the group, mode 600\n");
  return 0;
}

int print_schema(const Request& request) {
  using namespace crane::control;
  const bool json = request.output == "json";
  if (request.schema == "json-schema") {
    print(answers_schema().dump(2) + "\n");
  } else if (request.schema == "status") {
    print(json ? answers_json().dump(2) + "\n" : answers_markdown());
  } else {
    print(json ? schema_json().dump(2) + "\n" : schema_markdown());
  }
  return 0;
}

// --- the table of commands -----------------------------------------------------------------------

Command schema_command(Request& r) {
  return {"schema",
          "the fields of requests and answers",
          {{"what",
            &r.schema,
            "requests (default), status (the answers), or json-schema (the answers as JSON Schema)",
            {.choices = {"requests", "status", "json-schema"}}},
           output_word(r, "table (Markdown) or json")},
          {},
          [&r] { return print_schema(r); }};
}

// The options that name a group elsewhere.
struct Whence {
  std::string hosts, secret_file, config;
};

std::vector<Word> words_of_program(Request& r, Whence& w) {
  return {{"--dir", &r.dir, "directory of the groups (default: all directories of this user's)"},
          {"--hosts",
           &w.hosts,
           "h1,h2,h3: a group of these hosts, as in crane-run --hosts, from any machine",
           {.needs = {"--secret-file"}, .excludes = {"--dir", "--config"}}},
          {"--secret-file", &w.secret_file, "its secret", {.needs = {"--hosts"}}},
          {"--config",
           &w.config,
           "the group of this group.toml, from any machine (default: CRANE_CONTEXT)",
           {.excludes = {"--dir"}}},
          {"-q,--quiet", Word::Flag{&r.quiet}, "do not show how far a long step is"}};
}

Command all_commands(Request& r, Whence& w) {
  Command status_command{"status",
                         "roles, indexes, lag, servers",
                         {all_groups_word(r),
                          output_word(r),
                          {"--watch", Word::Flag{&r.watch}, "repeat every second"},
                          {"--wait",
                           &r.wait_s,
                           "return when all is well, or after that many seconds",
                           {.bounds = {{1, 86'400}}, .excludes = {"--watch"}}}},
                         {},
                         [&r] { return status(r); }};
  return {"crane-ctl",
          "Shows and controls the groups of this machine, or a group of other hosts.",
          words_of_program(r, w),
          {{"list",
            "the groups of this machine and their directories",
            {output_word(r)},
            {},
            [&r] { return list_groups(r); }},
           status_command,
           top_command(r),
           events_command(r),
           logs_command(r),
           attach_command(r),
           stop_command(r),
           leader_commands(r),
           member_commands(r),
           replica_commands(r),
           restore_command(r),
           {"signal",
            "sends a signal to the server's main process",
            {{"signal", &r.signal, "HUP, USR1, ...", {.required = true}}, group_word(r)},
            {},
            [&r] { return send_signal(r); }},
           checkpoint_commands(r),
           {"doctor",
            "checks whether this machine can run the group; 0: yes, 1: with limits, 2: no",
            {group_word(r), output_word(r)},
            {},
            [&r] { return examine_group(r); }},
           data_commands(r),
           backup_command(r),
           {"secret",
            "the secret that a group's hosts share",
            {},
            {{"new",
              "creates a secret",
              {{"file", &r.secret, "the file to create", {.required = true}}},
              {},
              [&r] { return make_secret(r); }}}},
           schema_command(r),
           upgrade_command(r),
           {"versions",
            "the versions that builds of Crane must share, and the build of each replica",
            {all_groups_word(r), output_word(r)},
            {},
            [&r] { return show_versions(r); }}}};
}

// --- from anywhere
// --------------------------------------------------------------------------------

// The commands that need nothing but answers of nodes.
constexpr const char* kAnywhere[] = {"status",        "top",
                                     "events",        "versions",
                                     "signal",        "member list",
                                     "member add",    "member promote",
                                     "member remove", "member replace",
                                     "replica drain", "leader transfer",
                                     "checkpoint now"};
// The commands without a group.
constexpr const char* kGroupless[] = {"schema", "secret new"};
// Those of all groups here, or of one that does not exist yet.
constexpr const char* kOfThisMachine[] = {"list", "restore", "data import"};

bool is_among(std::span<const char* const> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "leader transfer"; "": not below this command.
std::string name_of(const Command& above, const Command* wanted) {
  for (const Command& one : above.commands) {
    if (&one == wanted) return one.name;
    if (const std::string rest = name_of(one, wanted); !rest.empty()) return one.name + " " + rest;
  }
  return "";
}

// Sets request.context if the operator names a group elsewhere.
crane::Outcome choose_context(Whence whence, const std::string& command, Request& request) {
  using crane::setup::Status;
  const char* variable = std::getenv("CRANE_CONTEXT");
  const bool typed = !whence.hosts.empty() || !whence.config.empty() || !request.dir.empty();
  const bool inherits = !typed && variable != nullptr && *variable != '\0';
  if (inherits) whence.config = variable;
  if ((whence.hosts.empty() && whence.config.empty()) || is_among(kGroupless, command)) {
    return crane::Done{};
  }
  if (!is_among(kAnywhere, command)) {
    return crane::setup::failure(Status::kUsage, "runs only on the host of the replica",
                                 "crane-ctl " + command,
                                 "it needs files or processes of that machine",
                                 inherits ? "run it there, without CRANE_CONTEXT in the environment"
                                          : "run it there, without --hosts and --config");
  }
  Context context;
  auto p = whence.hosts.empty() ? context_of_file(whence.config, context)
                                : context_of_hosts(whence.hosts, whence.secret_file, context);
  if (p) request.context = std::make_shared<const Context>(std::move(context));
  return p;
}

// On the machine of crane-run --hosts: whether the command needs files that only its hosts have.
int refuse_elsewhere(const std::string& command, const Request& request) {
  if (request.context || is_among(kAnywhere, command) || is_among(kGroupless, command) ||
      is_among(kOfThisMachine, command)) {
    return 0;
  }
  bool denied = false;
  auto groups = find_groups(request.dir, denied);
  std::erase_if(groups, [&](const FoundGroup& group) {
    return !request.group.empty() && group.name != request.group;
  });
  if (groups.size() != 1 || !is_only_elsewhere(groups[0])) return 0;
  return refuse(groups[0].name, "crane-ctl " + command +
                                    " runs only on the host of the replica; to end the group, stop "
                                    "its crane-run --hosts, or run that with --stop");
}

// Moves the words after "--" of `upgrade` to `command`.  Returns the number of the remaining words.
int cut_command(int argc, char** argv, std::vector<std::string>& command) {
  bool upgrades = false;
  for (int i = 1; i < argc; ++i) {
    upgrades = upgrades || std::strcmp(argv[i], "upgrade") == 0;
    if (std::strcmp(argv[i], "--") != 0) continue;
    if (!upgrades) return argc;
    command.assign(argv + i + 1, argv + argc);
    return i;
  }
  return argc;
}

}  // namespace

int main(int argc, char** argv) {
  crane::setup::set_program("crane-ctl");
  Request request;
  Whence whence;
  const crane::setup::Program program{
      all_commands(request, whence), crane::launcher::version_of_launcher(),
      "Exit status: 0 done, all is well; 1 it serves, but a replica is missing, or one\n"
      "more loss stops it; 2 no leader; 3 no such group or checkpoint; 4 not permitted; 5 the\n"
      "node refused, or damage was found; 6 the server does not serve; 7 the lead was not\n"
      "transferred in time; 8 the upgrade was rolled back; 12 a node ended before it answered;\n"
      "100 wrong command line; 101 number of hosts; 102 to 104 the new program; 108 a file or "
      "directory\n"
      "cannot be made; 109 no room; 111 the group exists already; 112 a part of Crane is missing;\n"
      "118 the group's file; 119 secret."};
  CommandLine line(program);
  const auto report = [](const std::string& mistake) {
    print_message("command line: crane-ctl: " + mistake + "; see crane-ctl --help");
  };
  argc = cut_command(argc, argv, request.command);
  const int usage = static_cast<int>(crane::setup::Status::kUsage);
  if (const auto status = line.status_after(argc, argv, usage, report)) return *status;
  crane::setup::show_progress(!request.quiet);
  const std::string name = name_of(program.command, line.command());
  if (auto p = choose_context(std::move(whence), name, request); !p) {
    print_message(p.error().text);
    return p.error().exit_status;
  }
  if (const int refused = refuse_elsewhere(name, request); refused != 0) return refused;
  return line.command()->run();
}
