// SPDX-License-Identifier: Apache-2.0
// crane-ctl: the operator's tool.  Looks at the groups of this machine and asks their nodes to do
// things.
//
// Exit status: 0 done, or all is well; 1 the group serves, but a replica of this host does not
// answer; 2 there is no leader; 3 there is no such group or checkpoint; 4 not permitted; 5 the node
// refused, or a checkpoint is damaged, the message says why; 100 and 119 as crane-run's.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/launcher/checkpoints.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/replace.h"
#include "runtime/launcher/status_table.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/secret.h"

namespace {

using namespace crane::launcher;
using crane::setup::say;
using Json = nlohmann::json;

constexpr int kNoSuchGroup = 3, kNoSuchCheckpoint = 3, kNotPermitted = 4, kRefused = 5;
constexpr int kDamaged = 5;
constexpr int kReplicaMost = 126;
constexpr int kAskTimeoutMs = 2'000, kWatchMs = 1'000, kReplaceLookMs = 50;

struct Request {
  std::string dir, group, output = "table", secret, signal, checkpoint;
  bool watch = false;
  int to = -1;
  int replica = -1;
  int fresh = -1;  // member replace: who comes
};

// What the leader said to a request; `status` is crane-ctl's.
struct Told {
  int status = 0;
  std::string message;
  bool busy = false;  // refused now, maybe not later
  Json answer{};      // the whole of it, when status is 0
};

void print(const std::string& text) { (void)!write(STDOUT_FILENO, text.data(), text.size()); }

// Fills in the group when there is only one; 0, or the exit status after a message.
int choose_groups(const Request& request, std::vector<std::string>& groups) {
  bool denied = false;
  if (!request.group.empty()) {
    if (!find_replicas(request.dir, request.group, denied).empty()) {
      groups = {request.group};
      return 0;
    }
  } else {
    groups = find_groups(request.dir, denied);
    if (!groups.empty()) return 0;
  }
  if (denied) {
    say("cannot look at groups: " + request.dir +
        ": not permitted; run it as the user who started the group");
    return kNotPermitted;
  }
  say(request.group.empty()
          ? "no group: " + request.dir + ": nothing runs there; name another place with --dir"
          : "no such group: " + request.group + ": it is not in " + request.dir +
                "; see crane-ctl status, or name another place with --dir");
  return kNoSuchGroup;
}

std::map<int, NodeAnswer> ask_all(const Request& request, const std::string& group) {
  std::map<int, NodeAnswer> answers;
  bool denied = false;
  for (const auto& [replica, socket] : find_replicas(request.dir, group, denied)) {
    NodeAnswer& answer = answers[replica];
    std::string text;
    answer.reply = ask_node(socket, Json{{"do", "status"}}.dump(), kAskTimeoutMs, text);
    if (answer.reply != Reply::kAnswer) continue;
    answer.status = Json::parse(text, nullptr, false);
    if (!answer.status.is_object()) answer = {Reply::kSilent, {}};
  }
  return answers;
}

int status_once(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  std::string text;
  int worst = 0;
  for (const auto& group : groups) {
    const Json summary = summarise(group, ask_all(request, group));
    worst = std::max(worst, static_cast<int>(health_of(summary)));
    text += request.output == "json" ? summary.dump(request.watch ? -1 : 2) + "\n"
                                     : (text.empty() ? "" : "\n") + table_of(summary);
  }
  const bool redraw = request.watch && request.output == "table" && isatty(STDOUT_FILENO) != 0;
  print((redraw ? "\033[H\033[2J" : "") + text);
  return worst;
}

int status(const Request& request) {
  for (;;) {
    const int result = status_once(request);
    if (!request.watch || result >= kNoSuchGroup) return result;
    poll(nullptr, 0, kWatchMs);
  }
}

// Fills in the one group that is meant; 0, or the exit status after a message.
int choose_one(const Request& request, std::string& group) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  group = groups[0];
  if (groups.size() == 1) return 0;
  std::string names;
  for (const auto& name : groups) names += (names.empty() ? "" : ", ") + name;
  say("which group: there are several: " + names + "; name one");
  return kNoSuchGroup;
}

Told tell_leader(const Request& request, const std::string& group, const Json& summary,
                 const Json& what) {
  constexpr int kNoLeader = static_cast<int>(Health::kNoLeader);
  if (health_of(summary) == Health::kNoLeader || !summary["leader"].is_number()) {
    return {kNoLeader, "no leader: " + group + ": nobody leads now; see crane-ctl status " + group,
            true};
  }
  const int leader = summary["leader"].get<int>();
  bool denied = false;
  const auto sockets = find_replicas(request.dir, group, denied);
  if (sockets.count(leader) == 0) {
    return {kRefused, "not here: " + group + ": replica " + std::to_string(leader) +
                          " leads, on another host; run this there"};
  }
  std::string text;
  if (ask_node(sockets.at(leader), what.dump(), kAskTimeoutMs, text) != Reply::kAnswer) {
    return {kNoLeader,
            "no answer: " + group + ": the leader, replica " + std::to_string(leader) +
                ", does not answer; see its node.log",
            true};
  }
  const Json answer = Json::parse(text, nullptr, false);
  const std::string message = answer.is_object() ? answer.value("message", "") : "not understood";
  if (answer.is_object() && answer.value("ok", false)) return {0, message, false, answer};
  const std::string error = answer.is_object() ? answer.value("error", "") : "";
  return {kRefused, "refused: " + group + ": " + message, error == "busy" || error == "not_leader"};
}

// Asks the node that leads; a message and a status when that cannot be.
int ask_leader(const Request& request, const Json& what) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Told told = tell_leader(request, group, summarise(group, ask_all(request, group)), what);
  if (told.status == 0) {
    print(told.message + "\n");
  } else {
    say(told.message);
  }
  return told.status;
}

int list_members(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  int worst = 0;
  for (const auto& group : groups) {
    const Json summary = summarise(group, ask_all(request, group));
    worst = std::max(worst, static_cast<int>(health_of(summary)));
    print(request.output == "json" ? summary.value("members", Json::array()).dump(2) + "\n"
                                   : members_of(summary));
  }
  return worst;
}

int change_member(const Request& request, const char* change) {
  return ask_leader(request, {{"do", "member"}, {"change", change}, {"replica", request.replica}});
}

// Who leads says that a change is not committed yet.
bool is_changing(const std::map<int, NodeAnswer>& answers) {
  return std::any_of(answers.begin(), answers.end(), [](const auto& a) {
    const Json& status = a.second.status;
    return status.is_object() && status.value("role", "") == "leader" &&
           status.value("changing_members", false);
  });
}

// Says everything once: what goes on, and what it waits for.
int replace_member(const Request& request) {
  std::string group, said;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string old = std::to_string(request.replica), fresh = std::to_string(request.fresh);
  if (old == fresh) {
    say("command line: crane-ctl: a replica cannot replace itself; name two");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  bool leaving = false;
  const auto once = [&](const std::string& text) {
    if (text != said) print((said = text) + "\n");
  };
  for (;; poll(nullptr, 0, kReplaceLookMs)) {
    const auto answers = ask_all(request, group);
    const Json summary = summarise(group, answers);
    const Json members = summary.value("members", Json::array());
    if (members.empty() || is_changing(answers)) {
      if (members.empty() && leaving) {
        print("replica " + old + " leaves; nobody on this host is in the group any more\n");
        return 0;
      }
      if (members.empty()) once("waiting: nobody tells the members; see crane-ctl status " + group);
      continue;
    }
    const ReplaceStep step = next_step(members, request.replica, request.fresh);
    if (step == ReplaceStep::kDone) {
      print("replica " + fresh + " has replaced replica " + old + "\n");
      return 0;
    }
    if (step == ReplaceStep::kNoMember) {
      say("refused: " + group + ": replica " + old + " is no member; see crane-ctl member list");
      return kRefused;
    }
    const bool removes = step == ReplaceStep::kRemove;
    const char* change = removes ? "remove" : step == ReplaceStep::kAdd ? "add" : "promote";
    const Told told = tell_leader(request, group, summary,
                                  {{"do", "member"},
                                   {"change", change},
                                   {"replica", removes ? request.replica : request.fresh}});
    leaving |= removes && told.status == 0;
    if (told.status == 0) {
      once(told.message);
    } else if (told.busy) {
      once("waiting: " + told.message +
           (step == ReplaceStep::kPromote ? "; does its node run?" : ""));
    } else {
      say(told.message + "; the same command goes on from here, wherever it was broken off");
      return told.status;
    }
  }
}

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

// Asks for a checkpoint and waits for what becomes of it.
int checkpoint_now(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Json summary = summarise(group, ask_all(request, group));
  const Told told =
      tell_leader(request, group, summary, {{"do", "checkpoint"}, {"replica", request.replica}});
  if (told.status != 0) {
    say(told.message);
    return told.status;
  }
  print(told.message + "\n");
  const int who = told.answer.value("replica", -1);
  const auto at = told.answer.value("index", std::uint64_t{0});
  for (;; poll(nullptr, 0, kReplaceLookMs)) {
    const auto answers = ask_all(request, group);
    const auto found = answers.find(who);
    if (found == answers.end() || found->second.reply != Reply::kAnswer) {
      say("no answer: " + group + ": replica " + std::to_string(who) + "; see its node.log");
      return static_cast<int>(Health::kDegraded);
    }
    const Json told_of = found->second.status.value("checkpoint", Json::object());
    if (told_of.value("last", std::uint64_t{0}) >= at) {
      const auto ms = [&told_of](const char* key) {
        return std::to_string(told_of.value(key, std::uint64_t{0}) / 1000) + " ms";
      };
      print("published: at rest after " + ms("rest_us") + ", held for " + ms("held_us") +
            ", packed in " + ms("pack_us") + "\n");
      return 0;
    }
    if (told_of.value("gave_up", std::uint64_t{0}) >= at) {
      say("no checkpoint: " + group + ": replica " + std::to_string(who) + ": " +
          told_of.value("why_not", ""));
      return kRefused;
    }
  }
}

// Says what could not be looked at; an exit status.
int say_problems(const AllKept& found) {
  for (const std::string& problem : found.problems) say(problem);
  return found.denied ? kNotPermitted : found.problems.empty() ? 0 : kDamaged;
}

int list_checkpoints(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  int worst = 0;
  for (const auto& group : groups) {
    const AllKept found = find_checkpoints(request.dir, group);
    worst = std::max(worst, say_problems(found));
    if (found.checkpoints.empty() && !found.problems.empty()) continue;
    const Json listed = checkpoints_json(group, found.checkpoints);
    print(request.output == "json" ? listed.dump(2) + "\n" : checkpoints_table(listed));
  }
  return worst;
}

// All of a group, or all replicas' of one name.
int verify_checkpoints(Request request) {
  bool denied = false;
  if (request.checkpoint.empty() && !checkpoint_name(request.group).empty() &&
      find_replicas(request.dir, request.group, denied).empty()) {
    std::swap(request.group, request.checkpoint);
  }
  const std::string name = checkpoint_name(request.checkpoint);
  if (name.empty() && !request.checkpoint.empty()) {
    say("command line: crane-ctl: " + request.checkpoint +
        " names no checkpoint; they are named VIEW.INDEX, see crane-ctl checkpoint list");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const AllKept found = find_checkpoints(request.dir, group);
  int worst = say_problems(found);
  bool any = false;
  for (const Kept& kept : found.checkpoints) {
    if (!name.empty() && kept.listed.name != name) continue;
    any = true;
    std::string sentence;
    const Verdict verdict = verify_checkpoint(kept, sentence);
    if (verdict == Verdict::kWell || verdict == Verdict::kRemoved) {
      print(sentence + "\n");
      continue;
    }
    const bool bad = verdict == Verdict::kDamaged;
    say((bad ? "damaged: " : "cannot verify: ") + group + ": " + sentence);
    worst = std::max(worst, verdict == Verdict::kDenied ? kNotPermitted : kDamaged);
  }
  if (any || worst != 0) return worst;
  if (name.empty()) {
    print(checkpoints_table(checkpoints_json(group, {})));
    return 0;
  }
  say("no such checkpoint: " + group + ": " + name +
      ": no replica has it here; see crane-ctl checkpoint list " + group);
  return kNoSuchCheckpoint;
}

int make_secret(const Request& request) {
  const auto problem = crane::setup::make_secret(request.secret);
  if (!problem.none()) {
    say(problem.text);
    return static_cast<int>(problem.status);
  }
  print("made " + request.secret + "; copy it to every host of the group, mode 600\n");
  return 0;
}

// Of a command that only looks.
void declare_all_groups(CLI::App& command, Request& request) {
  command.add_option("group", request.group, "the group's name (default: all)");
  command.add_option("-o,--output", request.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
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

}  // namespace

int main(int argc, char** argv) {
  crane::setup::set_program("crane-ctl");
  CLI::App app{"Looks at the groups of this machine and steers them."};
  Request request;
  request.dir = crane::setup::default_directory();
  app.add_option("--dir", request.dir, "where the groups live")->capture_default_str();
  app.fallthrough();
  app.require_subcommand(1);
  auto* status_command = app.add_subcommand("status", "roles, indexes, lag, servers");
  declare_all_groups(*status_command, request);
  status_command->add_flag("--watch", request.watch, "again every second");
  auto* leader = app.add_subcommand("leader", "who leads");
  leader->require_subcommand(1);
  auto* transfer = leader->add_subcommand("transfer", "another replica leads from now on");
  transfer->add_option("group", request.group, "the group's name (default: the only one)");
  transfer->add_option("--to", request.to, "which one (default: who is furthest)");
  auto* member = app.add_subcommand("member", "who belongs to the group");
  member->require_subcommand(1);
  auto* list = member->add_subcommand("list", "the members, and how far they are");
  declare_all_groups(*list, request);
  const auto change = [&](const char* name, const char* what) {
    auto* command = member->add_subcommand(name, what);
    command->add_option("replica", request.replica, "its number")
        ->required()
        ->check(CLI::Range(0, kReplicaMost));
    command->add_option("group", request.group, "the group's name (default: the only one)");
    return command;
  };
  auto* add = change("add", "a replica of the group's file that is no member gets the log");
  auto* promote = change("promote", "a learner that has caught up votes");
  auto* remove = change("remove", "a member leaves; a leader hands over first");
  auto* replace = member->add_subcommand(
      "replace",
      "NEW is added, votes when it has caught up, then OLD leaves; broken off, it can be repeated");
  replace->add_option("old", request.replica, "the replica that leaves")
      ->required()
      ->check(CLI::Range(0, kReplicaMost));
  replace->add_option("new", request.fresh, "the replica of the group's file that comes")
      ->required()
      ->check(CLI::Range(0, kReplicaMost));
  replace->add_option("group", request.group, "the group's name (default: the only one)");
  auto* signalled = declare_signal(app, request);
  const auto checkpoint = declare_checkpoint(app, request);
  declare_secret(app, request);
  app.footer(
      "Exit status: 0 done, all is well; 1 a replica of this host does not answer; 2 no leader;\n"
      "3 no such group or checkpoint; 4 not permitted; 5 the node refused, or damage was found;\n"
      "100 wrong command line; 119 secret.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    say("command line: crane-ctl: " + std::string(error.what()) + "; see crane-ctl --help");
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  if (*status_command) return status(request);
  if (*transfer) return ask_leader(request, {{"do", "transfer"}, {"to", request.to}});
  if (*list) return list_members(request);
  if (*add) return change_member(request, "add");
  if (*promote) return change_member(request, "promote");
  if (*remove) return change_member(request, "remove");
  if (*replace) return replace_member(request);
  if (*signalled) return send_signal(request);
  if (*checkpoint.now) return checkpoint_now(request);
  if (*checkpoint.list) return list_checkpoints(request);
  if (*checkpoint.verify) return verify_checkpoints(request);
  return make_secret(request);
}
