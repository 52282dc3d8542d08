// SPDX-License-Identifier: Apache-2.0
// The commands crane-ctl logs, attach and stop: a group whose crane-run has no terminal.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "checkpoint/descriptor.h"
#include "dmt/base/read_text.h"
#include "runtime/control/progress.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/group_view.h"
#include "runtime/launcher/ctl/log_reader.h"
#include "runtime/launcher/run_files.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

using checkpoint::Descriptor;
using setup::print_message;
using Json = nlohmann::json;

constexpr int kLooksPerEndCheck = 10;  // between two checks whether the group runs

// --- the processes of a group
bool any_node_lives(const std::string& group) {
  for (int replica = 0; replica < setup::kPlacesMost; ++replica) {
    if (node_lives(setup::shared_directory(group), replica)) return true;
  }
  return false;
}

// Whether a process of the group is left: a crane-run, a node or an agent.
bool runs(const std::string& home, const std::string& group) {
  return setup::is_held(home) || any_node_lives(group);
}

// Reports that no crane-run supervises the group, and how to end it.  Returns the exit status.
int report_no_crane_run(const Request& request, const std::string& group) {
  const std::string home = request.home_of(group);
  const bool ours = access((home + "/running.json").c_str(), F_OK) == 0;
  std::string why;
  if (!runs(home, group)) {
    const auto note = read_exit_note(home);
    why = "the group does not run";
    if (note) why += "; its crane-run ended with " + description_of(*note);
  } else if (ours && setup::is_held(home)) {
    why =
        "its crane-run is starting, or it belongs to another user; try again, or run this as the "
        "user who started the group";
  } else if (ours) {
    why =
        "its nodes run, and no crane-run supervises them; the command that started the group takes "
        "it over, and crane-run --stop --name " +
        group + " --dir " + request.dir_of(group) + " ends it";
  } else {
    why =
        "its nodes run as services or by crane-run --hosts; end them with systemctl stop 'crane@" +
        group + "*', or with crane-run --hosts ... --name " + group + " --stop";
  }
  print_message("no crane-run: " + group + ": " + why);
  return kRefused;
}

// --- logs
// The output of a group: crane-run's messages and the servers' output.
class GroupOutput {
 public:
  GroupOutput(const std::string& home, std::vector<std::string> server_logs)
      : messages_({home + "/" + setup::kGroupLog}), servers_(std::move(server_logs)) {}

  void skip() {
    messages_.skip();
    servers_.skip();
  }
  // Prints everything that is there.
  void show() {
    show(messages_, "messages of crane-run");
    show(servers_, "output of the server");
  }

 private:
  void show(LogReader& log, const char* title) {
    for (std::string text = log.read(); !text.empty(); text = log.read()) {
      if (shown_ != title)
        print(std::string(shown_ == nullptr ? "" : "\n") + "==> " + title + " <==\n");
      shown_ = title;
      if (const std::uint64_t missing = log.take_missing(); missing > 0) {
        print("[" + control::size_text(missing) + " before this are no longer kept]\n");
      }
      print(text);
    }
  }

  LogReader messages_, servers_;
  const char* shown_ = nullptr;  // title of the last text
};

// The servers' logs, the leader's first; with --replica N only that one.
std::vector<std::string> server_logs(const Request& request, const std::string& group) {
  bool denied = false;
  std::map<int, std::string> logs;
  for (const auto& [replica, socket] : find_replicas(request.dir_of(group), group, denied)) {
    logs[replica] = socket.substr(0, socket.rfind('/')) + "/server.log";
  }
  if (request.replica >= 0) {
    if (logs.count(request.replica) == 0) return {};
    return {logs.at(request.replica)};
  }
  std::vector<std::string> paths;
  Json known = Json::parse(text_of_file(request.home_of(group) + "/state.json"), nullptr, false);
  if (!known.is_object()) known = summary_of(request, group);
  const auto first = static_cast<int>(control::number_in(known, "leader", kNoReplicaNumber));
  if (logs.count(first) != 0) paths.push_back(logs.at(first));
  for (const auto& [replica, log] : logs) {
    if (replica != first) paths.push_back(log);
  }
  return paths;
}

void report_end(const std::string& group, const std::optional<ExitNote>& note) {
  print_message("the group ended: " + group + ": " +
                (note ? description_of(*note) : std::string("its crane-run left no exit status")));
}

// Prints new output until the group ends, or until `stop` (a signalfd; -1: none) is readable.
// True: the group has ended.
bool follow(GroupOutput& output, const std::string& home, const std::string& group, int stop) {
  for (int looks = 1;; ++looks) {
    output.show();
    pollfd wanted{stop, POLLIN, 0};
    if (poll(&wanted, 1, kLookEveryMs) > 0) return false;
    if (looks % kLooksPerEndCheck != 0 || runs(home, group)) continue;
    output.show();
    return true;
  }
}

int show_logs(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string home = request.home_of(group);
  const auto servers = server_logs(request, group);
  if (servers.empty()) {
    print_message("no such replica: " + group + ": replica " + std::to_string(request.replica) +
                  " has no directory on this machine; see crane-ctl status " + group);
    return kRefused;
  }
  if (access(home.c_str(), R_OK) != 0) {
    print_message("cannot read the logs: " + home + ": " + strerror(errno) +
                  "; run it as the user who started the group");
    return kNotPermitted;
  }
  const Descriptor note(open((home + "/" + kExitStatus).c_str(), O_RDONLY | O_CLOEXEC));
  GroupOutput output(home, servers);
  output.show();
  if (!request.follow) return 0;
  (void)follow(output, home, group, -1);
  const auto left = read_exit_note(home);
  report_end(group, left ? left : read_exit_note(note.get()));
  return 0;
}

// --- attach
int attach(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string home = request.home_of(group);
  const CraneRun run = find_crane_run(home);
  if (run.pid == 0) return report_no_crane_run(request, group);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const Descriptor interrupt(signalfd(-1, &set, SFD_CLOEXEC));
  GroupOutput output(home, server_logs(request, group));
  output.skip();
  print_message("attached: " + group + ": new output follows; Ctrl-C leaves the group running");
  if (follow(output, home, group, interrupt.get())) {
    report_end(group, read_exit_note(run.note.get()));
  } else {
    print_message("the group continues: " + group + ": crane-ctl attach " + group +
                  " follows its output again, and crane-ctl stop " + group + " ends it");
  }
  return 0;
}

// --- stop
int stop(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const CraneRun run = find_crane_run(request.home_of(group));
  if (run.pid == 0) return report_no_crane_run(request, group);
  const std::string process = "crane-run (process " + std::to_string(run.pid) + ")";
  const CraneRunEnd end = end_crane_run(run, [&] {
    print_message("still waits: " + group + ": " + process +
                  " ends the server; crane-ctl logs -f " + group + " shows its messages");
  });
  if (end.refused != 0) {
    print_message("cannot stop: " + group + ": " + process + ": " + strerror(end.refused) +
                  "; run it as the user who started the group");
    return kNotPermitted;
  }
  const auto& note = end.note;
  if (!note) {
    print_message("stopped: " + group + ": " + process +
                  " was killed before the group had ended; see crane-ctl status " + group);
    return kRefused;
  }
  print("stopped " + group + ": " + process + " ended with " + description_of(*note) + "\n");
  return 0;
}

}  // namespace

Command logs_command(Request& r) {
  return {"logs",
          "crane-run's messages and the server's output",
          {group_word(r),
           {"-f,--follow", Word::Flag{&r.follow},
            "also print what is written later, until Ctrl-C "
            "or the end of the group"},
           {"--replica",
            &r.replica,
            "the output of this replica's server (default: the leader's)",
            {.bounds = {{0, kReplicaMost}}}}},
          {},
          [&r] { return show_logs(r); }};
}

Command attach_command(Request& r) {
  return {"attach",
          "follows the output of a group; Ctrl-C leaves the group running",
          {group_word(r)},
          {},
          [&r] { return attach(r); }};
}

Command stop_command(Request& r) {
  return {"stop",
          "ends a group through its crane-run, and reports its exit status",
          {group_word(r)},
          {},
          [&r] { return stop(r); }};
}

}  // namespace crane::launcher
