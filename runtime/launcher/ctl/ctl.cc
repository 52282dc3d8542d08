// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/ctl.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "checkpoint/machine_files.h"
#include "dmt/base/join.h"
#include "dmt/base/process_stat.h"
#include "dmt/base/read_text.h"
#include "runtime/control/start_file.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/context_file.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/ctl/group_view.h"
#include "runtime/launcher/ctl/plain_answers.h"
#include "runtime/launcher/ctl/reach.h"
#include "runtime/launcher/ctl/sizes.h"
#include "runtime/launcher/ctl/starter.h"
#include "runtime/launcher/ctl/step_line.h"
#include "runtime/launcher/return_notice.h"
#include "runtime/launcher/run_files.h"
#include "runtime/launcher/take_over.h"
#include "runtime/launcher/text_table.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {

using setup::print_message;
using Json = nlohmann::json;

namespace {
constexpr int kWatchMs = 1'000;

// The row of a group in crane-ctl list.
Json row_of(const Json& summary, const std::string& home) {
  const Json& replicas = summary["replicas"];
  const auto here = std::count_if(replicas.begin(), replicas.end(),
                                  [](const Json& r) { return r.value("state", "") == "ok"; });
  Json row{{"group", summary["group"]},
           {"state", here == 0 && summary["health"] == "no leader" ? "stopped" : summary["health"]},
           {"leader", summary["leader"]},
           {"answering", here},
           {"replicas", replicas.size()},
           {"lasts", lasting_of(home, control::text_in(summary, "durability"))},
           {"directory", home}};
  if (summary.contains("ended")) row["ended"] = summary["ended"];
  return row;
}

// The pid of a replica's node, from crane-run's state file; 0: unknown.
pid_t node_pid(const std::string& home, int replica) {
  const Json state = Json::parse(text_of_file(home + "/state.json"), nullptr, false);
  for (const Json& row : control::list_in(state, "replicas")) {
    if (control::replica_in(row) != replica) continue;
    return static_cast<pid_t>(control::number_in(row, "node_pid"));
  }
  return 0;
}

// Whether the node lives and has not written its status yet.  A node that has written it and does
// not answer is silent, not starting.
bool starts(const std::string& replica_home, pid_t node) {
  const auto stat = node > 0 ? read_process_stat(node) : std::nullopt;
  if (!stat || stat->state == 'Z') return false;
  const Json status = Json::parse(text_of_file(replica_home + "/status.json"), nullptr, false);
  return static_cast<pid_t>(control::number_in(status, "pid")) != node;
}

}  // namespace

void print(const std::string& text) { (void)!write(STDOUT_FILENO, text.data(), text.size()); }

int refuse(const std::string& group, const std::string& why) {
  print_message("refused: " + group + ": " + why);
  return kRefused;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

namespace {

int choose_far_group(const Request& request, std::vector<std::string>& groups) {
  const std::string& known = request.context->group;
  if (known.empty() && request.group.empty()) {
    print_message("which group: --hosts does not name it; write its name after the command");
    return static_cast<int>(setup::Status::kUsage);
  }
  if (!known.empty() && !request.group.empty() && known != request.group) {
    print_message("no such group: " + request.group + ": the group's file is that of " + known);
    return kNoSuchGroup;
  }
  groups = {known.empty() ? request.group : known};
  return 0;
}

// Reports a context of crane-run --hosts that cannot be used.
int check_contexts(const Request& request, const std::vector<std::string>& groups) {
  for (const auto& group : groups) {
    const std::string dir = request.dir_of(group);
    if (!has_context(dir, group)) continue;
    Context context;
    if (auto p = context_of_file(context_path(dir, group), context); !p) {
      print_message(p.error().text);
      return p.error().exit_status;
    }
  }
  return 0;
}

}  // namespace

int choose_groups(const Request& request, std::vector<std::string>& groups) {
  if (request.context) return choose_far_group(request, groups);
  bool denied = false;
  if (request.group.empty()) {
    for (const auto& found : find_groups(request.dir, denied)) groups.push_back(found.name);
  } else if (!directory_of(request.dir, request.group, denied).empty()) {
    groups = {request.group};
  }
  if (!groups.empty()) return check_contexts(request, groups);
  const std::string places = places_of(request.dir);
  if (denied) {
    print_message("cannot look at groups: " + places +
                  ": not permitted; run it as the user who started the group");
    return kNotPermitted;
  }
  print_message(request.group.empty()
                    ? "no group: nothing runs in " + places + "; name another place with --dir"
                    : "no such group: " + request.group + ": it is not in " + places +
                          "; see crane-ctl list, or name another place with --dir" +
                          (is_number(request.group) ? "; --help shows how to name a replica" : ""));
  return kNoSuchGroup;
}

namespace {

// What this machine's files say about a node that did not answer.
void explain_absence(const std::string& home, int replica, NodeAnswer& answer) {
  const std::string own = home + "/r" + std::to_string(replica);
  if (answer.reply == Reply::kAbsent &&
      access((own + "/" + setup::kDrainedMark).c_str(), F_OK) == 0) {
    answer.reply = Reply::kDrained;
  }
  if (answer.reply == Reply::kAbsent || answer.reply == Reply::kSilent) {
    pid_t node = node_pid(home, replica);
    answer.operations = control::operations_of_start(own, node);
    if (starts(own, node)) answer.reply = Reply::kStarts;
  }
  if (answer.reply == Reply::kAbsent) answer.returns = read_notice(own);
}

// The files of another host say that a replica there is drained; from here, the other nodes do.
void add_drained(std::map<int, NodeAnswer>& answers) {
  const Json* const witness = witness_of(answers);
  if (witness == nullptr) return;
  for (const Json& peer : control::list_in(*witness, "peers")) {
    const auto found = answers.find(control::replica_in(peer));
    if (found == answers.end() || found->second.here) continue;
    const bool gone = found->second.reply == Reply::kAbsent;
    if (gone && control::flag_in(peer, "drained")) found->second.reply = Reply::kDrained;
  }
}

}  // namespace

std::map<int, NodeAnswer> ask_all(const Request& request, const std::string& group) {
  std::map<int, NodeAnswer> answers;
  const auto reach = reach_of(request, group);
  for (const auto& [replica, got] : reach->ask(reach->replicas(), Json{{"do", "status"}}.dump())) {
    NodeAnswer& answer = answers[replica];
    answer.reply = got.reply;
    answer.here = got.here;
    if (got.here) explain_absence(request.home_of(group), replica, answer);
    if (answer.reply != Reply::kAnswer) continue;
    answer.status = Json::parse(got.text, nullptr, false);
    if (answer.status.is_object()) continue;
    answer.status = {};
    answer.reply = Reply::kSilent;
  }
  add_drained(answers);
  return answers;
}

namespace {

// A hint for the operator; empty: lost replicas are started again.
std::string unsupervised_text(const Request& request, const std::string& group) {
  const std::string home = request.home_of(group);
  switch (supervision_of(request.dir_of(group), group)) {
    case Supervision::kPresent:
      return "";
    case Supervision::kStopped: {
      const std::string pid = std::to_string(crane_run_of(home));
      return "crane-run (process " + pid +
             ") is stopped, and lost replicas stay away; kill -CONT " + pid +
             " lets it continue, crane-ctl stop " + group + " ends the group";
    }
    case Supervision::kGone:
      break;
  }
  const auto record = read_record(home);
  return "no crane-run supervises this group, and lost replicas stay away; " +
         (record ? command_text(record->words) + " takes it over, " : std::string()) +
         "crane-run --stop --name " + group + " --dir " + request.dir_of(group) + " ends it";
}

}  // namespace

Json summary_of(const Request& request, const std::string& group) {
  if (request.context) return summarise(group, ask_all(request, group));
  Json summary = summarise(group, ask_all(request, group), unsupervised_text(request, group));
  const std::string home = request.home_of(group);
  if (const auto note = read_exit_note(home); note && !setup::is_held(home)) {
    summary["ended"] = description_of(*note);
  }
  return summary;
}

namespace {

// The worse of two results: no leader is worse than not serving, which is worse than degraded.
int worse(int status, Health health) {
  constexpr Health kBestFirst[] = {Health::kWell, Health::kDegraded, Health::kNotServing,
                                   Health::kNoLeader};
  const auto rank = [&](Health h) { return std::find(kBestFirst, std::end(kBestFirst), h); };
  const auto before = static_cast<Health>(status);
  return static_cast<int>(rank(before) < rank(health) ? health : before);
}

// Lines for two cases: the machine has programs or settings that the group's servers do not read
// yet; and, if replicas differed, files that the servers read were written in place.
std::string files_text(const Request& request, const std::string& group, const Json& summary) {
  constexpr std::size_t kNamed = 8;
  if (request.context) return {};  // the files of this machine are not those of the servers
  const Running running = running_in(summary);
  if (running.command.empty()) return {};
  std::uint64_t divergences = 0;
  for (const Json& row : control::list_in(summary, "replicas")) {
    divergences += control::number_in(row, "divergences");
  }
  const std::string record = request.home_of(group) + "/" + setup::kFilesRecord;
  const auto held = checkpoint::recorded_files(record, running.files);
  if (!held.ok()) return {};
  std::string text;
  if (!checkpoint::is_current(held.value())) {
    text = "files: programs or /etc of this machine are newer than those that the servers read (" +
           held.value().state + "); crane-ctl upgrade " + group + " switches to them\n";
  }
  if (divergences == 0) return text;
  const auto written = checkpoint::written_in_place(held.value(), kNamed);
  if (written.empty()) return text;
  return text + "files: replicas differed, and these were written in place after " +
         held.value().state + " was made: " + joined(written) + "\n";
}

// What crane-ctl status shows.
struct Report {
  int status = 0;
  bool is_health = false;  // else `status` is of a message that was printed
  std::string text{};
  std::string problem{};  // the verdict on the first group that is not well
};

Report report_on(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return {bad};
  Report report{0, true};
  for (const auto& group : groups) {
    Json summary = summary_of(request, group);
    if (!request.context) add_sizes(summary, request.home_of(group));
    report.status = worse(report.status, health_of(summary));
    if (health_of(summary) != Health::kWell && report.problem.empty()) {
      report.problem = group + ": " + control::text_in(summary["verdict"], "text");
    }
    report.text += request.output == "json"
                       ? summary.dump(request.watch ? -1 : 2) + "\n"
                       : (report.text.empty() ? "" : "\n") + table_of(summary) +
                             files_text(request, group, summary);
  }
  return report;
}

// Whether the named group is not there, so that it may be about to start.
bool is_missing(const Request& request) {
  bool denied = false;
  return !request.context && !request.group.empty() &&
         directory_of(request.dir, request.group, denied).empty() && !denied;
}

// The report when all is well, or that after `wait_s`.
Report report_when_well(const Request& request) {
  StepLine line("wait until all is well");
  const std::int64_t end_ms = now_ms() + std::int64_t{request.wait_s} * 1000;
  for (;;) {
    const bool waits = now_ms() < end_ms;
    if (waits && is_missing(request)) {
      line.show("no group " + request.group + " yet");
    } else {
      Report report = report_on(request);
      if (!waits || !report.is_health || report.status == 0) return report;
      line.show(report.problem);
    }
    poll(nullptr, 0, kAskAgainMs);
  }
}

}  // namespace

int list_groups(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  Json rows = Json::array();
  for (const auto& group : groups) {
    const std::string home = request.home_of(group);
    rows.push_back(row_of(summary_of(request, group), home));
  }
  constexpr Column kColumns[] = {{"GROUP", "group", false},         {"STATE", "state", false},
                                 {"LEADER", "leader", true},        {"ANSWER", "answering", true},
                                 {"OF", "replicas", true},          {"LASTS", "lasts", false},
                                 {"DIRECTORY", "directory", false}, {"ENDED", "ended", false}};
  print(request.output == "json" ? rows.dump(2) + "\n" : table(kColumns, rows));
  return 0;
}

int status(const Request& request) {
  const bool redraws = request.watch && request.output == "table" && isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const Report report = report_when_well(request);
    if (!report.is_health) return report.status;
    print((redraws ? "\033[H\033[2J" : "") + report.text);
    if (!request.watch) return report.status;
    poll(nullptr, 0, kWatchMs);
  }
}

// Sets `group` to the only group that matches.  Returns 0, or the exit status after a message.
int choose_one(const Request& request, std::string& group) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  group = groups[0];
  if (groups.size() == 1) return 0;
  print_message("which group: there are several: " + joined(groups) + "; name one");
  return kNoSuchGroup;
}

RequestResult result_of(const std::string& group, const std::string& text) {
  const Json answer = Json::parse(text, nullptr, false);
  const std::string message =
      answer.is_object() ? control::text_in(answer, "message") : "not understood";
  if (control::flag_in(answer, "ok")) return {0, message, false, answer};
  const std::string error = control::text_in(answer, "error");
  return {kRefused,
          "refused: " + group + ": " + message,
          error == "busy" || error == "not_leader",
          {},
          error};
}

namespace {

// The rest of a sentence about a replica.
const char* why_no_answer(Reply reply) {
  switch (reply) {
    case Reply::kUnreachable:
      return "cannot be reached from here; see the network, and the address of its host";
    case Reply::kOtherSecret:
      return "holds another secret; name the group's secret file, and the group";
    case Reply::kOtherReplica:
      return "is not at that address; list the hosts in the order of crane-run --hosts";
    case Reply::kLost:
      return "ended before it answered, and may have carried out the request; see crane-ctl status";
    default:
      return "does not answer; see its node.log";
  }
}

}  // namespace

RequestResult answer_of(const std::string& group, int replica, const Reach::Answer& got) {
  if (got.reply == Reply::kAnswer) return result_of(group, got.text);
  return {kNoAnswer,
          "no answer: " + group + ": replica " + std::to_string(replica) + " " +
              why_no_answer(got.reply),
          true};
}

RequestResult ask_replica(const Request& request, const std::string& group, int replica,
                          const Json& what) {
  const auto reach = reach_of(request, group);
  const std::string name = "replica " + std::to_string(replica);
  if (reach->replicas().count(replica) == 0) {
    return {kRefused, "not here: " + group + ": " + name +
                          (request.context ? " is not in the list of hosts"
                                           : " is on another host; run this there")};
  }
  return answer_of(group, replica, reach->ask({replica}, what.dump()).at(replica));
}

RequestResult request_of_leader(const Request& request, const std::string& group,
                                const Json& summary, const Json& what) {
  constexpr int kNoLeader = static_cast<int>(Health::kNoLeader);
  if (health_of(summary) == Health::kNoLeader || !summary["leader"].is_number()) {
    return {kNoLeader, "no leader: " + group + ": no replica leads; see crane-ctl status " + group,
            true};
  }
  RequestResult result = ask_replica(request, group, summary["leader"].get<int>(), what);
  if (result.status == kNoAnswer) result.status = kNoLeader;
  return result;
}

int ask_leader(const Request& request, const Json& what) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const RequestResult result = request_of_leader(request, group, summary_of(request, group), what);
  if (result.status == 0) {
    print(result.message + "\n");
  } else {
    print_message(result.message);
  }
  return result.status;
}

int list_members(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  int worst = 0;
  for (const auto& group : groups) {
    const Json summary = summary_of(request, group);
    worst = worse(worst, health_of(summary));
    print(request.output == "json" ? members_json(summary).dump(2) + "\n" : members_of(summary));
  }
  return worst;
}

}  // namespace crane::launcher
