// SPDX-License-Identifier: Apache-2.0
// crane-ctl: the operator's tool.  Looks at the groups of this machine and asks their nodes to do
// things (ctl.h).
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
#include "runtime/setup/secret.h"

namespace {

using namespace crane::launcher;
using crane::setup::Command;
using crane::setup::CommandLine;
using crane::setup::say;
using crane::setup::Word;

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

Word group_word(Request& r) {
  return {"group", &r.group, "the group's name (default: the only one)"};
}
Word all_groups_word(Request& r) { return {"group", &r.group, "the group's name (default: all)"}; }
Word output_word(Request& r, const char* help = "table or json") {
  return {"-o,--output", &r.output, help, {.choices = {"table", "json"}}};
}
Word number_word(const char* name, int& number, const char* help) {
  return {name, &number, help, {.bounds = {{0, kReplicaMost}}, .required = true}};
}

Command leader_commands(Request& r) {
  return {"leader",
          "who leads",
          {},
          {{"transfer",
            "another replica leads from now on",
            {group_word(r),
             {"--to", &r.to, "which one (default: who is furthest)"},
             {"--no-wait", Word::Flag{&r.no_wait}, "do not wait until it leads"}},
            {},
            [&r] { return transfer_lead(r); }}}};
}

Command member_commands(Request& r) {
  const auto change = [&r](const char* name, const char* help) {
    return Command{name,
                   help,
                   {number_word("replica", r.replica, "its number"), group_word(r)},
                   {},
                   [&r, name] { return change_member(r, name); }};
  };
  return {"member",
          "who belongs to the group",
          {},
          {{"list",
            "the members, and how far they are",
            {all_groups_word(r), output_word(r)},
            {},
            [&r] { return list_members(r); }},
           change("add", "a replica that is no member gets the log, and begins at a checkpoint"),
           change("promote", "a learner that has caught up votes"),
           change("remove", "a member leaves; a leader hands over first"),
           {"replace",
            "NEW is added, votes when it has caught up, then OLD leaves; broken off, it can be "
            "repeated",
            {number_word("old", r.replica, "the replica that leaves"),
             number_word("new", r.fresh, "the replica that comes"), group_word(r)},
            {},
            [&r] { return replace_member(r); }}}};
}

Command one_replica(Request& r, const char* name, const char* help,
                    std::function<int(const Request&)> run) {
  return {
      name, help, {number_word("replica", r.replica, "its number"), group_word(r)}, {}, [&r, run] {
        return run(r);
      }};
}

Command replica_commands(Request& r) {
  return {
      "replica",
      "one replica leaves for a while, or restarts",
      {},
      {one_replica(r, "drain",
                   "it hands the lead over; its server and node end, and are not missed",
                   drain_replica),
       one_replica(r, "resume", "one that was drained, or is lost, recovers", resume_replica),
       one_replica(r, "replace", "in its own slot: with nothing but a checkpoint, as a new member",
                   replace_replica)}};
}

Command checkpoint_commands(Request& r) {
  return {"checkpoint",
          "the server's state, kept by a follower",
          {},
          {{"now",
            "one more, by the next follower",
            {group_word(r),
             {"--replica", &r.replica, "which one takes it"},
             {"--tier",
              &r.tier,
              "criu: its processes (default); restart: the server of every replica is ended and "
              "started "
              "again on its files, which are kept; clients are disconnected",
              {.choices = {"criu", "restart"}, .excludes = {"--replica"}}}},
            {},
            [&r] { return checkpoint_now(r); }},
           {"list",
            "those on this machine, newest first",
            {all_groups_word(r), output_word(r)},
            {},
            [&r] { return list_checkpoints(r); }},
           {"verify",
            "reads all of them on this machine",
            {group_word(r), {"name", &r.checkpoint, "only this one, VIEW.INDEX"}},
            {},
            [&r] { return verify_checkpoints(r); }}}};
}

Word file_word(Request& r, const char* help) { return {"file", &r.file, help, {.required = true}}; }
Word tier_word(Request& r, const char* help) {
  return {"--tier", &r.tier, help, {.choices = {"criu", "restart"}}};
}

Command data_commands(Request& r) {
  return {"data",
          "the files that the server keeps in --data",
          {},
          {{"export",
            "as they are at one entry of the log, by a follower, while the group serves",
            {file_word(r, "the file to make, a tar archive within zstd; -: standard output"),
             group_word(r),
             {"--unpacked", Word::Flag{&r.unpacked}, "make a directory instead"},
             {"--replica", &r.replica, "which one exports", {.bounds = {{0, kReplicaMost}}}},
             tier_word(r, "as of checkpoint now; restart: files of a server that ended in order")},
            {},
            [&r] { return export_data(r); }},
           {"import",
            "makes a new group that begins with them",
            {file_word(r, "what data export made; -: standard input"),
             {"group", &r.group, "the new group's name", {.required = true}}},
            {},
            [&r] { return import_data(r); }}}};
}

Command backup_command(Request& r) {
  return {"backup",
          "a group at one entry of the log, while it serves, as one file",
          {file_word(r, "the file to make, which has the group's secret; -: standard output"),
           group_word(r),
           {"--replica", &r.replica, "takes a fresh checkpoint", {.bounds = {{0, kReplicaMost}}}},
           tier_word(r, "of a fresh checkpoint, as of checkpoint now")},
          {},
          [&r] { return back_up(r); }};
}

// A number is a replica, anything else a file.
int restore(Request& r) {
  const bool number = r.file.size() <= 3 && !r.file.empty() &&
                      r.file.find_first_not_of("0123456789") == std::string::npos;
  if (!number && (!r.group.empty() || !r.checkpoint.empty())) {
    say("command line: crane-ctl: restore " + r.file +
        " names a file, whose group is in it; leave out " + r.group);
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  if (!number) return restore_backup(r);
  r.replica = std::stoi(r.file);
  if (r.replica <= kReplicaMost && r.tier.empty()) return restore_replica(r);
  say("command line: crane-ctl: restore " + r.file +
      (r.tier.empty() ? ": there are replicas 0 to " + std::to_string(kReplicaMost)
                      : ": --tier is for files; ./" + r.file + " is one"));
  return static_cast<int>(crane::setup::Status::kUsage);
}

Command restore_command(Request& r) {
  return {
      "restore",
      "a replica restarts at a checkpoint, or a group is made of a backup",
      {{"what",
        &r.file,
        "a replica's number; or a file that backup made, -: standard input",
        {.required = true}},
       group_word(r),
       {"name", &r.checkpoint, "of a replica: this checkpoint, VIEW.INDEX (default: the newest)"},
       tier_word(r, "of a file: restart: only the server's files, with which it begins")},
      {},
      [&r] { return restore(r); }};
}

Command schema_command(Request& r) {
  return {"schema",
          "what requests and answers may hold",
          {{"what",
            &r.schema,
            "requests (default), status: what is answered, or json-schema: that as a JSON Schema",
            {.choices = {"requests", "status", "json-schema"}}},
           output_word(r, "table (Markdown) or json")},
          {},
          [&r] { return print_schema(r); }};
}

Command top_command(Request& r) {
  return {"top",
          "what each replica does just now: rates, clients, processor time, every 2 seconds",
          {all_groups_word(r),
           output_word(r),
           {"--once", Word::Flag{&r.once}, "after 2 seconds, and no more"}},
          {},
          [&r] { return top(r); }};
}

Command events_command(Request& r) {
  return {"events",
          "what happened to the replicas of this machine, and when",
          {all_groups_word(r),
           output_word(r),
           {"-n,--last",
            &r.last,
            "only so many, the newest (default {}: all that are kept)",
            {.bounds = {{0, 1'000'000}}}}},
          {},
          [&r] { return show_events(r); }};
}

Command upgrade_command(Request& r) {
  return {
      "upgrade",
      "the server with another command line, behind --: ended and begun at one entry of the log, "
      "rolled back if it does not come up; without one: this build of Crane in place of the "
      "replicas', where their schedules differ",
      {group_word(r),
       {"--seconds",
        &r.seconds,
        "within which it listens, or the build leads (default {})",
        {.bounds = {{1, 86'400}}}},
       {"--yes", Word::Flag{&r.yes}, "do not ask"}},
      {},
      [&r] { return upgrade_server(r); }};
}

Command all_commands(Request& r) {
  Command status_command{
      "status",
      "roles, indexes, lag, servers",
      {all_groups_word(r), output_word(r), {"--watch", Word::Flag{&r.watch}, "again every second"}},
      {},
      [&r] { return status(r); }};
  return {"crane-ctl",
          "Looks at the groups of this machine and steers them.",
          {{"--dir", &r.dir, "where the groups live (default: wherever this user's are)"}},
          {{"list",
            "the groups of this machine, and where they are",
            {output_word(r)},
            {},
            [&r] { return list_groups(r); }},
           status_command,
           top_command(r),
           events_command(r),
           leader_commands(r),
           member_commands(r),
           replica_commands(r),
           restore_command(r),
           {"signal",
            "the server's main process gets a signal",
            {{"signal", &r.signal, "HUP, USR1, ...", {.required = true}}, group_word(r)},
            {},
            [&r] { return send_signal(r); }},
           checkpoint_commands(r),
           {"doctor",
            "whether this machine has what the group needs; 0: all, 1: with limits, 2: no",
            {group_word(r), output_word(r)},
            {},
            [&r] { return examine_group(r); }},
           data_commands(r),
           backup_command(r),
           {"secret",
            "the secret that a group's hosts share",
            {},
            {{"new",
              "makes one",
              {{"file", &r.secret, "the file to make", {.required = true}}},
              {},
              [&r] { return make_secret(r); }}}},
           schema_command(r),
           upgrade_command(r),
           {"versions",
            "what builds of Crane must have in common, and the build of each replica",
            {all_groups_word(r), output_word(r)},
            {},
            [&r] { return show_versions(r); }}}};
}

// Of `upgrade` the words behind "--" are another program's; how many are ours.
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
      "Exit status: 0 done, all is well; 1 a replica of this host does not answer; 2 no leader;\n"
      "3 no such group or checkpoint; 4 not permitted; 5 the node refused, or damage was found;\n"
      "6 the server does not serve; 7 the lead was not transferred in time; 8 the upgrade was "
      "rolled back;\n"
      "100 wrong command line; 102 to 104 the new program; 108 a file or directory cannot be "
      "made;\n"
      "109 no room; 111 there is such a group; 119 secret."};
  CommandLine line(program);
  const auto report = [](const std::string& mistake) {
    say("command line: crane-ctl: " + mistake + "; see crane-ctl --help");
  };
  argc = cut_command(argc, argv, request.command);
  const int usage = static_cast<int>(crane::setup::Status::kUsage);
  if (const auto status = line.status_after(argc, argv, usage, report)) return *status;
  return line.command()->run();
}
