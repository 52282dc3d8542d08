// SPDX-License-Identifier: Apache-2.0
// crane-ctl: the operator's tool.  Looks at the groups of this machine and asks their nodes to do
// things (ctl.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstring>

#include "dmt/base/join.h"
#include "runtime/control/answers.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/suggest.h"
#include "runtime/launcher/version.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/secret.h"

namespace {

using namespace crane::launcher;
using crane::setup::say;

constexpr int kReplicaMost = 126;

// "HUP", "SIGHUP" or "1"; 0 if it is none, or one that no program can handle.
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
    say("command line: crane-ctl: " + request.signal +
        " names no signal that a server can handle; for example HUP");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  return ask_leader(request, {{"do", "signal"}, {"signo", signo}});
}

int make_secret(const Request& request) {
  const auto problem = crane::setup::make_secret(request.secret);
  if (!problem) {
    say(problem.error().text);
    return problem.error().exit_status;
  }
  print("made " + request.secret + "; copy it to every host of the group, mode 600\n");
  return 0;
}

void declare_group(CLI::App& command, Request& request) {
  command.add_option("group", request.group, "the group's name (default: the only one)");
}

void declare_number(CLI::App& command, const char* name, int& number, const char* what) {
  command.add_option(name, number, what)->required()->check(CLI::Range(0, kReplicaMost));
}

// Of a command that only looks.
void declare_all_groups(CLI::App& command, Request& request) {
  command.add_option("group", request.group, "the group's name (default: all)");
  command.add_option("-o,--output", request.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
}

CLI::App* declare_schema(CLI::App& app, Request& request) {
  auto* schema = app.add_subcommand("schema", "what requests and answers may hold");
  schema->add_option("what", request.schema, "requests (default), or status: what is answered")
      ->check(CLI::IsMember({"requests", "status"}));
  schema->add_option("-o,--output", request.output, "table (Markdown) or json")
      ->check(CLI::IsMember({"table", "json"}));
  return schema;
}

int print_schema(const Request& request) {
  using namespace crane::control;
  const bool json = request.output == "json";
  if (request.schema == "status") {
    print(json ? answers_json().dump(2) + "\n" : answers_markdown());
  } else {
    print(json ? schema_json().dump(2) + "\n" : schema_markdown());
  }
  return 0;
}

CLI::App* declare_signal(CLI::App& app, Request& request) {
  auto* command = app.add_subcommand("signal", "the server's main process gets a signal");
  command->add_option("signal", request.signal, "HUP, USR1, ...")->required();
  command->add_option("group", request.group, "the group's name (default: the only one)");
  return command;
}

struct CheckpointCommands {
  CLI::App *now, *list, *verify;
};

CheckpointCommands declare_checkpoint(CLI::App& app, Request& request) {
  auto* checkpoint = app.add_subcommand("checkpoint", "the server's state, kept by a follower");
  checkpoint->require_subcommand(1);
  auto* now = checkpoint->add_subcommand("now", "one more, by the next follower");
  now->add_option("group", request.group, "the group's name (default: the only one)");
  now->add_option("--replica", request.replica, "which one takes it");
  now->add_option(
         "--tier", request.tier,
         "criu: its processes (default); restart: the server of every replica is ended and "
         "started again on its files, which are kept; clients are disconnected")
      ->check(CLI::IsMember({"criu", "restart"}))
      ->excludes("--replica");
  auto* list = checkpoint->add_subcommand("list", "those on this machine, newest first");
  declare_all_groups(*list, request);
  auto* verify = checkpoint->add_subcommand("verify", "reads all of them on this machine");
  verify->add_option("group", request.group, "the group's name (default: the only one)");
  verify->add_option("name", request.checkpoint, "only this one, VIEW.INDEX");
  return {now, list, verify};
}

void declare_secret(CLI::App& app, Request& request) {
  auto* secret = app.add_subcommand("secret", "the secret that a group's hosts share");
  secret->require_subcommand(1);
  auto* fresh = secret->add_subcommand("new", "makes one");
  fresh->add_option("file", request.secret, "the file to make")->required();
}

struct MemberCommands {
  CLI::App *list, *add, *promote, *remove, *replace;
};

MemberCommands declare_member(CLI::App& app, Request& request) {
  auto* member = app.add_subcommand("member", "who belongs to the group");
  member->require_subcommand(1);
  auto* list = member->add_subcommand("list", "the members, and how far they are");
  declare_all_groups(*list, request);
  const auto change = [&](const char* name, const char* what) {
    auto* command = member->add_subcommand(name, what);
    declare_number(*command, "replica", request.replica, "its number");
    declare_group(*command, request);
    return command;
  };
  auto* add = change("add", "a replica that is no member gets the log, and begins at a checkpoint");
  auto* promote = change("promote", "a learner that has caught up votes");
  auto* remove = change("remove", "a member leaves; a leader hands over first");
  auto* replace = member->add_subcommand(
      "replace",
      "NEW is added, votes when it has caught up, then OLD leaves; broken off, it can be repeated");
  declare_number(*replace, "old", request.replica, "the replica that leaves");
  declare_number(*replace, "new", request.fresh, "the replica that comes");
  declare_group(*replace, request);
  return {list, add, promote, remove, replace};
}

struct ReplicaCommands {
  CLI::App *drain, *resume, *replace, *restore;
};

ReplicaCommands declare_replica(CLI::App& app, Request& request) {
  auto* replica = app.add_subcommand("replica", "one replica leaves for a while, or restarts");
  replica->require_subcommand(1);
  const auto one = [&](CLI::App& above, const char* name, const char* what) {
    auto* command = above.add_subcommand(name, what);
    declare_number(*command, "replica", request.replica, "its number");
    declare_group(*command, request);
    return command;
  };
  auto* drain =
      one(*replica, "drain", "it hands the lead over; its server and node end, and are not missed");
  auto* resume = one(*replica, "resume", "one that was drained, or is lost, recovers");
  auto* replace =
      one(*replica, "replace", "in its own place: with nothing but a checkpoint, as a new member");
  auto* restore = one(app, "restore", "a replica restarts at a checkpoint");
  restore->add_option("name", request.checkpoint, "this one, VIEW.INDEX (default: the newest)");
  return {drain, resume, replace, restore};
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

// Of a command line that was not understood: the first word that is no command where there must be
// one, or what is missing; empty: that is not the mistake.
std::string misused_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* level = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto known = commands_of(*level);
    if (known.empty()) return "";
    if (word == "--dir") ++i;
    if (word.rfind('-', 0) == 0) continue;
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return unknown_command(word, known);
    }
    level = level->get_subcommand(word);
  }
  const auto known = commands_of(*level);
  if (known.empty()) return "";
  return (level == &app ? "a command is missing: " : level->get_name() + " what: ") +
         crane::joined(known);
}

int run(const MemberCommands& member, const ReplicaCommands& replica,
        const CheckpointCommands& checkpoint, const Request& request) {
  if (*member.list) return list_members(request);
  if (*member.add) return change_member(request, "add");
  if (*member.promote) return change_member(request, "promote");
  if (*member.remove) return change_member(request, "remove");
  if (*member.replace) return replace_member(request);
  if (*replica.drain) return drain_replica(request);
  if (*replica.resume) return resume_replica(request);
  if (*replica.replace) return replace_replica(request);
  if (*replica.restore) return restore_replica(request);
  if (*checkpoint.now) return checkpoint_now(request);
  if (*checkpoint.list) return list_checkpoints(request);
  if (*checkpoint.verify) return verify_checkpoints(request);
  return make_secret(request);
}

}  // namespace

int main(int argc, char** argv) {
  crane::setup::set_program("crane-ctl");
  CLI::App app{"Looks at the groups of this machine and steers them."};
  app.set_version_flag("--version", crane::launcher::version_of_launcher());
  Request request;
  app.add_option("--dir", request.dir, "where the groups live (default: wherever this user's are)");
  app.fallthrough();
  app.require_subcommand(1);
  auto* list = app.add_subcommand("list", "the groups of this machine, and where they are");
  list->add_option("-o,--output", request.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  auto* status_command = app.add_subcommand("status", "roles, indexes, lag, servers");
  declare_all_groups(*status_command, request);
  status_command->add_flag("--watch", request.watch, "again every second");
  auto* leader = app.add_subcommand("leader", "who leads");
  leader->require_subcommand(1);
  auto* transfer = leader->add_subcommand("transfer", "another replica leads from now on");
  declare_group(*transfer, request);
  transfer->add_option("--to", request.to, "which one (default: who is furthest)");
  transfer->add_flag("--no-wait", request.no_wait, "do not wait until it leads");
  const auto member = declare_member(app, request);
  const auto replica = declare_replica(app, request);
  auto* signalled = declare_signal(app, request);
  const auto checkpoint = declare_checkpoint(app, request);
  declare_secret(app, request);
  auto* schema = declare_schema(app, request);
  app.footer(
      "Exit status: 0 done, all is well; 1 a replica of this host does not answer; 2 no leader;\n"
      "3 no such group or checkpoint; 4 not permitted; 5 the node refused, or damage was found;\n"
      "6 the server does not serve; 7 the lead was not transferred in time; 100 wrong command "
      "line;\n"
      "119 secret.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {  // --help, --version
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    const std::string what = misused_command(app, argc, argv);
    say("command line: crane-ctl: " + (what.empty() ? std::string(error.what()) : what) +
        "; see crane-ctl --help");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  if (*list) return list_groups(request);
  if (*status_command) return status(request);
  if (*transfer) return transfer_lead(request);
  if (*signalled) return send_signal(request);
  if (*schema) {
    return print_schema(request);
  }
  return run(member, replica, checkpoint, request);
}
