// SPDX-License-Identifier: Apache-2.0
// crane-ctl checkpoint now, list, verify.
#include <poll.h>

#include <algorithm>

#include "runtime/launcher/child.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/ctl/checkpoints.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/starter.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/progress_line.h"

namespace crane::launcher {

using setup::print_message;
using Json = nlohmann::json;

namespace {

// The times of the checkpoint's parts, as its replica reports them.
std::string times_of(const Json& checkpoint_status, const std::string& tier) {
  const auto ms = [&checkpoint_status](const char* key) {
    return std::to_string(control::number_in(checkpoint_status, key) / 1000) + " ms";
  };
  if (tier == "restart") return "published: packed in " + ms("pack_us");
  return "published: quiescent after " + ms("rest_us") + ", held for " + ms("held_us") +
         ", packed in " + ms("pack_us");
}

// The result of the checkpoint that `taken` names.
struct Ended {
  int status = 0;
  std::string message;  // the failure, or the times of its parts; "": it is on another host
  bool busy = false;    // not tried, because an earlier checkpoint was not finished
};

// `passed_on`: the replica asked its leader, which does not answer before the replica follows.
Ended wait_for_end(const Request& request, const std::string& group, Taken& taken, bool passed_on) {
  const std::string replica = "replica " + std::to_string(taken.replica);
  const auto deadline = now_ms() + kOtherStepsMs;
  const bool restarts = request.tier == "restart";  // it waits for a checkpoint under way
  setup::ProgressLine line("checkpoint of " + replica, 0);
  for (;; poll(nullptr, 0, kLookEveryMs)) {
    const auto answers = ask_all(request, group);
    const auto found = answers.find(taken.replica);
    taken.here = found != answers.end() || is_here(request, group, taken.replica);
    if (!taken.here) return {};
    if (found == answers.end() || found->second.reply != Reply::kAnswer) {
      return {kNoAnswer, "no answer: " + group + ": " + replica +
                             ", which was to take the checkpoint; type the command again"};
    }
    const Json checkpoint_status = control::object_in(found->second.status, "checkpoint");
    if (control::number_in(checkpoint_status, "last") >= taken.index) {
      return {0, times_of(checkpoint_status, request.tier)};
    }
    for (const Json& one : control::list_in(found->second.status, "operations")) {
      if (control::text_in(one, "operation") != "checkpoint") continue;
      line.set(control::number_in(one, "done"), control::number_in(one, "of"));
    }
    // A checkpoint at a later entry will do, too.
    if (control::number_in(checkpoint_status, "under_way") >= taken.index) continue;
    if (passed_on && now_ms() >= deadline) {
      return {kRefused, "no checkpoint: " + group + ": no leader requested one of " + replica +
                            " within 90 s; crane-ctl status says whether it follows"};
    }
    const bool busy = control::flag_in(checkpoint_status, "busy");
    if (control::number_in(checkpoint_status, "gave_up") >= taken.index && !(busy && restarts)) {
      const std::string why = control::text_in(checkpoint_status, "why_not");
      return {kRefused, "no checkpoint: " + group + ": " + replica + ": " + why, busy};
    }
  }
}

bool is_member(const Json& summary, int replica) {
  const Json& members = control::list_in(summary, "members");
  return members.empty() || std::any_of(members.begin(), members.end(), [&](const Json& member) {
           return control::replica_in(member) == replica;
         });
}

// Whether the request goes to the replica that is to take the checkpoint, because the leader's node
// is on another host.
bool is_passed_on(const Request& request, const std::string& group, const Json& summary) {
  const Json& leader = summary["leader"];
  return request.replica >= 0 && request.tier != "restart" && leader.is_number() &&
         !is_reached(request, group, leader.get<int>()) &&
         is_reached(request, group, request.replica);
}

// Why no replica that may take the checkpoint can; empty: one can, or is on another host.
std::string why_none(const Request& request, const Json& summary) {
  if (request.tier == "restart") return "";
  std::string why;
  std::size_t seen = 0;
  for (const Json& row : summary["replicas"]) {
    if (request.replica >= 0 && control::replica_in(row) != request.replica) continue;
    const Json& checkpoint = control::object_in(row, "checkpoint");
    if (control::text_in(checkpoint, "none_because").empty()) return "";
    why = control::text_in(checkpoint, "none_because");
    ++seen;
  }
  return seen >= (request.replica >= 0 ? 1 : control::list_in(summary, "members").size()) ? why
                                                                                          : "";
}

}  // namespace

int take_checkpoint(const Request& request, Taken& taken,
                    const std::function<void(const std::string&)>& progress) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  Json what{{"do", "checkpoint"}};
  if (request.replica >= 0) what["replica"] = request.replica;
  if (!request.tier.empty()) what["tier"] = request.tier;
  const auto deadline = now_ms() + kOtherStepsMs;
  for (;; poll(nullptr, 0, kAskAgainMs)) {
    const Json summary = summary_of(request, group);
    if (request.replica >= 0 && !is_member(summary, request.replica)) {
      return refuse(group, "replica " + std::to_string(request.replica) +
                               " is not a member; see crane-ctl member list");
    }
    if (const std::string why = why_none(request, summary); !why.empty()) {
      return refuse(group, "no checkpoint can be taken: " + why);
    }
    const bool passed_on = is_passed_on(request, group, summary);
    const RequestResult result = passed_on ? ask_replica(request, group, request.replica, what)
                                           : request_of_leader(request, group, summary, what);
    if (result.status != 0) {
      print_message(result.message);
      return result.status;
    }
    progress(result.message);
    taken = {control::replica_in(result.answer), control::number_in(result.answer, "index"), true};
    const Ended ended = wait_for_end(request, group, taken, passed_on);
    if (ended.busy && now_ms() < deadline) {  // the group is taking a periodic checkpoint
      progress("replica " + std::to_string(taken.replica) +
               " has not finished its previous checkpoint: trying again");
      continue;
    }
    if (ended.status != 0) print_message(ended.message);
    if (ended.status == 0 && !ended.message.empty()) progress(ended.message);
    return ended.status;
  }
}

namespace {

// Prints the problems and returns the exit status.
int print_problems(const AllKept& found) {
  for (const std::string& problem : found.problems) print_message(problem);
  return found.denied ? kNotPermitted : found.problems.empty() ? 0 : kDamaged;
}

}  // namespace

int name_checkpoint(Request& request) {
  bool denied = false;
  if (request.checkpoint.empty() && !checkpoint_name(request.group).empty() &&
      find_replicas(request.dir_of(request.group), request.group, denied).empty()) {
    std::swap(request.group, request.checkpoint);
  }
  const std::string name = checkpoint_name(request.checkpoint);
  if (name.empty() && !request.checkpoint.empty()) {
    print_message("command line: crane-ctl: " + request.checkpoint +
                  " is not a checkpoint's name (VIEW.INDEX); see crane-ctl checkpoint list");
    return static_cast<int>(setup::Status::kUsage);
  }
  request.checkpoint = name;
  return 0;
}

// Taken from crane-run's record, else from a node.
std::string log_digest_of(const Request& request, const std::string& group) {
  const auto record = read_record(request.home_of(group));
  if (record) return checkpoint::digest_of_log(group, number_of_log(record->log_id));
  for (const auto& [replica, answer] : ask_all(request, group)) {
    if (answer.reply != Reply::kAnswer) continue;
    const auto digest = answer.status.find("log_digest");
    if (digest != answer.status.end() && digest->is_string()) return digest->get<std::string>();
  }
  return "";
}

int checkpoint_now(const Request& request) {
  Taken taken;
  const int status =
      take_checkpoint(request, taken, [](const std::string& text) { print(text + "\n"); });
  if (status == 0 && !taken.here) {
    print("replica " + std::to_string(taken.replica) +
          " is on another host: run crane-ctl checkpoint list there\n");
  }
  return status;
}

namespace {

int list_checkpoints(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  int worst = 0;
  for (const auto& group : groups) {
    const AllKept found = checkpoint::find_kept(request.home_of(group));
    worst = std::max(worst, print_problems(found));
    if (found.checkpoints.empty() && !found.problems.empty()) continue;
    const Json listed = checkpoints_json(group, found.checkpoints);
    print(request.output == "json" ? listed.dump(2) + "\n" : checkpoints_table(listed));
  }
  return worst;
}

// Verifies all checkpoints of a group, or those of all replicas with one name.
int verify_checkpoints(Request request) {
  if (const int bad = name_checkpoint(request); bad != 0) return bad;
  const std::string& name = request.checkpoint;
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const AllKept found = checkpoint::find_kept(request.home_of(group));
  const std::string digest = log_digest_of(request, group);
  int worst = print_problems(found);
  bool any = false;
  for (const Kept& kept : found.checkpoints) {
    if (!name.empty() && kept.listed.name != name) continue;
    any = true;
    std::string sentence;
    const Verdict verdict = verify_checkpoint(kept, digest, sentence);
    if (verdict == Verdict::kWell || verdict == Verdict::kRemoved) {
      print(sentence + "\n");
      continue;
    }
    print_message((verdict == Verdict::kDamaged   ? "damaged: "
                   : verdict == Verdict::kForeign ? "not of this group: "
                                                  : "cannot verify: ") +
                  group + ": " + sentence);
    worst = std::max(worst, verdict == Verdict::kDenied ? kNotPermitted : kDamaged);
  }
  if (any || worst != 0) return worst;
  if (name.empty()) {
    print(checkpoints_table(checkpoints_json(group, {})));
    return 0;
  }
  print_message("no such checkpoint: " + group + ": " + name +
                ": no replica of this machine has it; see crane-ctl checkpoint list " + group);
  return kNoSuchCheckpoint;
}

}  // namespace

Command checkpoint_commands(Request& r) {
  return {
      "checkpoint",
      "checkpoints of the server's state",
      {},
      {{"now",
        "takes a checkpoint, on a follower",
        {group_word(r),
         {"--replica", &r.replica, "the replica that takes it", {.bounds = {{0, kReplicaMost}}}},
         {"--tier",
          &r.tier,
          "criu: the server's processes (default); restart: ends the server of every replica, "
          "keeps its files and starts it again on them; clients are disconnected",
          {.choices = {"criu", "restart"}, .excludes = {"--replica"}}}},
        {},
        [&r] { return checkpoint_now(r); }},
       {"list",
        "the checkpoints on this machine, newest first",
        {all_groups_word(r), output_word(r)},
        {},
        [&r] { return list_checkpoints(r); }},
       {"verify",
        "reads the checkpoints on this machine",
        {group_word(r), {"name", &r.checkpoint, "only the checkpoint VIEW.INDEX"}},
        {},
        [&r] { return verify_checkpoints(r); }}}};
}

}  // namespace crane::launcher
