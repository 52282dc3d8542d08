// SPDX-License-Identifier: Apache-2.0
// crane-ctl: the operator's tool.  Shows this machine's groups and sends requests to their nodes.
#include <csignal>
#include <cstring>
#include <functional>
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

Command all_commands(Request& r) {
  Command status_command{"status",
                         "roles, indexes, lag, servers",
                         {all_groups_word(r),
                          output_word(r),
                          {"--watch", Word::Flag{&r.watch}, "repeat every second"}},
                         {},
                         [&r] { return status(r); }};
  return {"crane-ctl",
          "Shows and controls the groups of this machine.",
          {{"--dir", &r.dir, "directory of the groups (default: all directories of this user's)"},
           {"-q,--quiet", Word::Flag{&r.quiet}, "do not show how far a long step is"}},
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
  const crane::setup::Program program{
      all_commands(request), crane::launcher::version_of_launcher(),
      "Exit status: 0 done, all is well; 1 it serves, but one more loss may stop it; 2 no leader;\n"
      "3 no such group or checkpoint; 4 not permitted; 5 the node refused, or damage was found;\n"
      "6 the server does not serve; 7 the lead was not transferred in time; 8 the upgrade was "
      "rolled back;\n"
      "100 wrong command line; 102 to 104 the new program; 108 a file or directory cannot be "
      "made;\n"
      "109 no room; 111 the group exists already; 112 a part of Crane is missing; 119 secret."};
  CommandLine line(program);
  const auto report = [](const std::string& mistake) {
    print_message("command line: crane-ctl: " + mistake + "; see crane-ctl --help");
  };
  argc = cut_command(argc, argv, request.command);
  const int usage = static_cast<int>(crane::setup::Status::kUsage);
  if (const auto status = line.status_after(argc, argv, usage, report)) return *status;
  crane::setup::show_progress(!request.quiet);
  return line.command()->run();
}
