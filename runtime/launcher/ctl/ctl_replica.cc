// SPDX-License-Identifier: Apache-2.0
// crane-ctl member, replica and restore: the group's members, and the starting points of replicas.
//
// Each command looks at the group's state and does the next step.  It can therefore be interrupted
// and run again at any point.
#include <poll.h>

#include <algorithm>

#include "checkpoint/kept.h"
#include "dmt/base/process_stat.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/ctl/checkpoints.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/replace.h"
#include "runtime/launcher/ctl/starter.h"

namespace crane::launcher {

using setup::print_message;
using Json = nlohmann::json;
using control::flag_in, control::list_in, control::number_in, control::object_in;
using control::replica_in, control::text_in;

namespace {

constexpr int kNoLeader = static_cast<int>(Health::kNoLeader);
constexpr std::int64_t kPatienceMs = 30'000;  // limit for one step
constexpr std::int64_t kAbsentMs = 5'000;     // after this absence a node is not expected back
constexpr int kLooks = 10;                    // looks in a row at which a replica has caught up

std::string name_of(int replica) { return "replica " + std::to_string(replica); }

// Prints a message only when it differs from the last one.
class ChangePrinter {
 public:
  void operator()(const std::string& text) {
    if (text != last_message_) print((last_message_ = text) + "\n");
  }

 private:
  std::string last_message_;
};

// Whether the leader reports a change that is not committed yet.
bool is_changing(const std::map<int, NodeAnswer>& answers) {
  return std::any_of(answers.begin(), answers.end(), [](const auto& a) {
    const Json& status = a.second.status;
    return text_in(status, "role") == "leader" && flag_in(status, "changing_members");
  });
}

std::string role_of(const Json& summary, int replica) {
  for (const Json& member : list_in(summary, "members")) {
    if (replica_in(member) == replica) return text_in(member, "member");
  }
  return "";
}

// The row of a replica; an empty object: none.
Json row_of(const Json& summary, int replica) {
  for (const Json& row : list_in(summary, "replicas")) {
    if (replica_in(row) == replica) return row;
  }
  return Json::object();
}

// Makes sure that there is a checkpoint: a new replica that begins at one is ready in seconds.
void keep_one(const Request& request, const std::string& group) {
  // The leader of several hosts requests one when it is needed.
  if (request.context) return;
  const auto kept = checkpoint::find_kept(request.home_of(group)).checkpoints;
  const bool any =
      std::any_of(kept.begin(), kept.end(), [](const Kept& k) { return k.listed.damage.empty(); });
  if (any) return;
  Request now = request;
  now.group = group;
  now.replica = -1;
  if (checkpoint_now(now) != 0) {
    print("the new replica runs all inputs since the group began\n");
  }
}

bool leads(const Json& summary, int replica) {
  return summary["leader"].is_number() && summary["leader"] == replica;
}

// Hands the lead over if this replica has it.
int hand_over(const Request& request, const std::string& group, int replica) {
  const auto deadline = now_ms() + kPatienceMs;
  for (ChangePrinter print_change; now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    if (!summary["leader"].is_number()) continue;
    if (summary["leader"] != replica) return 0;
    const RequestResult result = request_of_leader(request, group, summary, {{"do", "transfer"}});
    if (result.status != 0 && !result.busy) {
      print_message(result.message);
      return result.status;
    }
    print_change("the lead is handed over");
  }
  return refuse(group, name_of(replica) + " still leads; see crane-ctl status " + group);
}

// A zombie counts as ended: its parent may be slow to reap it.
bool has_ended(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return !stat || stat->state == 'Z';
}

// The replica's state in the summary: "ok" if it runs, "drained", ...
std::string state_of(const Request& request, const std::string& group, int replica) {
  return text_in(row_of(summary_of(request, group), replica), "state");
}

// Ends the replica's server and node in order.
int drain(const Request& request, const std::string& group, int replica, Starter starter) {
  const auto deadline = now_ms() + kPatienceMs;
  bool asked = false;
  pid_t node = 0;
  for (ChangePrinter print_change;; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    const Json row = row_of(summary, replica);
    const std::string state = text_in(row, "state");
    // The node reports "drained" before it has ended its server.
    const bool elsewhere = starter == Starter::kElsewhere;
    const bool ended = elsewhere || node <= 0 || has_ended(node);
    if (state == "drained" && ended) return 0;
    // Its host refuses connections: the node has ended.
    if (elsewhere && asked && state == "node is gone") return 0;
    if (state == "node is gone" && !asked) {
      return refuse(group, name_of(replica) + " does not run; " + resume_hint(starter, replica));
    }
    if (asked && state == "ok" && static_cast<pid_t>(number_in(row, "pid")) != node) {
      return refuse(group, name_of(replica) +
                               " left, but its node was started again at once; stop the node "
                               "with the service manager that watches it");
    }
    if (now_ms() >= deadline) {
      return refuse(group, name_of(replica) + " does not end; see its node.log");
    }
    if (asked) continue;
    node = static_cast<pid_t>(number_in(row, "pid"));
    // Before the lead moves: a leader that is needed refuses, and keeps the lead.
    const RequestResult result = ask_replica(request, group, replica, {{"do", "leave"}});
    asked = result.status == 0;
    if (asked) {
      print_change(result.message);
    } else if (result.busy && leads(summary, replica)) {
      if (const int bad = hand_over(request, group, replica); bad != 0) return bad;
    } else if (result.busy) {
      print_change("waiting: " + result.message);
    } else {
      print_message(result.message);
      return result.status;
    }
  }
}

// For a node that does not answer: why it will not; empty: it still may.
std::string why_absent(const Request& request, const std::string& group, int replica,
                       std::int64_t& absent_since_ms) {
  if (absent_since_ms == 0) absent_since_ms = now_ms();
  const std::string what = name_of(replica) + " did not recover";
  const std::string see = "; see its node.log";
  const RequestResult agent = ask_agent(request, group, replica, {{"do", "state"}});
  if (agent.status == 0 && !agent.message.empty()) return what + ": " + agent.message + see;
  // A node that fetches a checkpoint does not answer itself.
  const bool begins = agent.status == 0 && flag_in(agent.answer, "node");
  if (begins || agent.busy) absent_since_ms = now_ms();
  return now_ms() - absent_since_ms < kAbsentMs ? "" : what + see;
}

// Whether the replica follows or leads, and needs no checkpoint.
bool is_fed(const Json& summary, const Json& row) {
  return summary["leader"].is_number() && number_in(row, "server_pid") > 0 &&
         !flag_in(row, "needs_checkpoint") && !flag_in(row, "catching_up");
}

// Waits until the replica runs, votes, and has applied what the group had committed at the call.
int wait_until_back(const Request& request, const std::string& group, int replica,
                    Starter starter) {
  const bool alone = starter != Starter::kCraneRun;
  std::uint64_t goal = number_in(summary_of(request, group), "commit");
  std::int64_t absent_since_ms = 0;
  int looks = 0;
  for (ChangePrinter print_change;; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    const Json row = row_of(summary, replica);
    if (text_in(row, "state") != "ok") {
      const std::string why = why_absent(request, group, replica, absent_since_ms);
      looks = 0;
      if (why.empty()) continue;
      return refuse(group, why);
    }
    absent_since_ms = 0;
    const std::string role = role_of(summary, replica);
    // A replica alone on its host learns the group's progress from the leader, with a delay.
    looks = is_fed(summary, row) ? looks + 1 : 0;
    if (alone && looks == kLooks) goal = number_in(row, "commit");
    const bool knows = alone ? looks >= kLooks : looks > 0;
    const bool there = knows && number_in(row, "applied") >= goal;
    if (!there || role != "voter") {
      print_change(there ? "waiting: it votes once its log has caught up"
                         : "waiting: its server catches up");
      continue;
    }
    const std::uint64_t at = number_in(object_in(row, "checkpoint"), "restored_at");
    std::uint64_t view = 0, wanted = 0;
    checkpoint::parse_name(request.checkpoint, view, wanted);
    if (!request.checkpoint.empty() && at != wanted) {
      return refuse(group, name_of(replica) + " recovered from entry " + std::to_string(at) +
                               ", not from " + request.checkpoint + "; its node.log says why");
    }
    print(name_of(replica) + " is back" +
          (at > 0 ? ", from the checkpoint at entry " + std::to_string(at)
                  : ", after it ran all inputs since the group began") +
          "\n");
    return 0;
  }
}

// Sends the request to the program that starts the replica's node.
RequestResult ask_to_start(const Request& request, const std::string& group, int replica,
                           Starter starter, bool forgets) {
  switch (starter) {
    case Starter::kCraneRun:
      if (!forgets && request.checkpoint.empty()) {
        // A lost or drained replica can start without a leader, which may need its vote.
        const RequestResult result =
            ask_crane_run(request, group, {{"do", "resume"}, {"replica", replica}});
        if (result.status == 0) return result;
      }
      return request_of_leader(request, group, summary_of(request, group),
                               {{"do", "bring_back"},
                                {"replica", replica},
                                {"forget", forgets},
                                {"checkpoint", request.checkpoint}});
    case Starter::kAgent:
      return ask_agent(request, group, replica, {{"do", "resume"}, {"forget", forgets}});
    case Starter::kNone:
    case Starter::kElsewhere:
      break;
  }
  return {kRefused, "refused: " + group + ": " + name_of(replica) +
                        " does not run, and no program on this machine starts its node; " +
                        resume_hint(Starter::kNone, replica)};
}

int bring_back(const Request& request, const std::string& group, int replica, Starter starter,
               bool forgets) {
  const auto deadline = now_ms() + kPatienceMs;
  for (;; poll(nullptr, 0, kLookEveryMs)) {
    const RequestResult result = ask_to_start(request, group, replica, starter, forgets);
    // An earlier request may have succeeded although its answer came too late.
    const bool begun = result.busy && state_of(request, group, replica) == "ok";
    if (result.status == 0 || begun) {
      print((begun ? name_of(replica) + " is started" : result.message) + "\n");
      return wait_until_back(request, group, replica, starter);
    }
    if (result.busy && now_ms() < deadline) continue;
    print_message(result.message);
    return result.status;
  }
}

bool knows_members(const Json& summary) {
  return !list_in(summary, "members").empty() && summary["leader"].is_number();
}

// Checks that the replica is a member which serves clients.
int check_member(const Request& request, const std::string& group, const Json& summary) {
  if (!knows_members(summary)) {
    print_message("no leader: " + group + ": no node reports the members; see crane-ctl status " +
                  group);
    return kNoLeader;
  }
  const std::string role = role_of(summary, request.replica);
  if (role == "analysis") {
    return refuse(group,
                  name_of(request.replica) +
                      " is an analysis replica: it serves no client, and crane-run starts it "
                      "again; crane-ctl member remove " +
                      std::to_string(request.replica) + " ends it");
  }
  if (!role.empty()) return 0;
  return refuse(group, name_of(request.replica) + " is not a member; see crane-ctl member list");
}

// Chooses the group and checks the replica.
int choose_member(const Request& request, std::string& group) {
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  return check_member(request, group, summary_of(request, group));
}

// The same for a member with files on this machine.
int choose_here(const Request& request, std::string& group) {
  if (const int bad = choose_member(request, group); bad != 0) return bad;
  if (is_here(request, group, request.replica)) return 0;
  return refuse(group, name_of(request.replica) + " is on another host; run this there");
}

// The same for a member whose node can be asked.
int choose_reached(const Request& request, std::string& group) {
  if (const int bad = choose_member(request, group); bad != 0) return bad;
  if (is_reached(request, group, request.replica)) return 0;
  return refuse(group, name_of(request.replica) + " is on another host; run this there");
}

// Checks that the named checkpoint is on this machine and undamaged.  Returns 0, or the exit status
// after a message.
int check_named(const Request& request, const std::string& group) {
  const std::string digest = log_digest_of(request, group);
  std::string sentence;
  bool found = false;
  Verdict verdict = Verdict::kWell;
  for (const Kept& kept : checkpoint::find_kept(request.home_of(group)).checkpoints) {
    if (kept.listed.name != request.checkpoint) continue;
    found = true;
    verdict = verify_checkpoint(kept, digest, sentence);
    if (verdict == Verdict::kWell) return 0;
  }
  if (found) {
    print_message((verdict == Verdict::kForeign ? "not of this group: " : "damaged: ") + group +
                  ": " + sentence);
    return kDamaged;
  }
  print_message("no such checkpoint: " + group + ": " + request.checkpoint +
                ": no replica of this machine has it; see crane-ctl checkpoint list " + group);
  return kNoSuchCheckpoint;
}

// Sends the leader the next request of `member replace`.  `goal`: the index that the new replica
// must have applied before it votes.
RequestResult next_change(const Request& request, const std::string& group, const Json& summary,
                          ReplaceStep step, std::uint64_t goal) {
  const bool removes = step == ReplaceStep::kRemove;
  const char* change = removes ? "remove" : step == ReplaceStep::kAdd ? "add" : "promote";
  const Json row = row_of(summary, request.fresh);
  // For a replica on another host this is unknown.
  const bool runs = !row.contains("server_pid") || number_in(row, "server_pid") > 0;
  if (step == ReplaceStep::kPromote && (!runs || number_in(row, "applied") < goal)) {
    return {kRefused, name_of(request.fresh) + " is still catching up", true};
  }
  return request_of_leader(request, group, summary,
                           {{"do", "member"},
                            {"change", change},
                            {"replica", removes ? request.replica : request.fresh}});
}

}  // namespace

int restore_replica(Request request) {
  std::string group;
  if (const int bad = name_checkpoint(request); bad != 0) return bad;
  if (const int bad = choose_member(request, group); bad != 0) return bad;
  const Starter starter = starter_of(request, group, request.replica);
  if (starter != Starter::kCraneRun) {
    return refuse(group,
                  "only crane-run on one host can do that; with several hosts, crane-ctl replica "
                  "drain and resume restart the replica at its host's newest checkpoint");
  }
  if (!request.checkpoint.empty()) {
    if (const int bad = check_named(request, group); bad != 0) return bad;
  } else if (checkpoint::find_kept(request.home_of(group)).checkpoints.empty()) {
    print_message("no such checkpoint: " + group +
                  ": there is none; crane-ctl checkpoint now takes one");
    return kNoSuchCheckpoint;
  }
  if (state_of(request, group, request.replica) == "ok") {
    if (const int bad = drain(request, group, request.replica, starter); bad != 0) return bad;
  }
  return bring_back(request, group, request.replica, starter, false);
}

namespace {

int change_member(const Request& request, const char* change) {
  if (std::string(change) == "add") {
    std::string group;
    if (const int bad = choose_one(request, group); bad != 0) return bad;
    const Json summary = summary_of(request, group);
    // Before the checkpoint.  A group of which no node answers has no places here.
    const std::size_t places = list_in(summary, "replicas").size();
    if (places > 0 && static_cast<std::size_t>(request.replica) >= places) {
      return refuse(group, "the group has places for replicas 0 to " + std::to_string(places - 1) +
                               "; crane-run --spares N, or more [[replica]] tables in the group's "
                               "file, make more");
    }
    if (role_of(summary, request.replica).empty()) keep_one(request, group);
  }
  return ask_leader(request, {{"do", "member"}, {"change", change}, {"replica", request.replica}});
}

// Replaces one member with another, step by step, and prints each step once.
int replace_member(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string old = std::to_string(request.replica), fresh = std::to_string(request.fresh);
  if (old == fresh) {
    print_message(
        "command line: crane-ctl: a replica cannot replace itself; name two, or use crane-ctl "
        "replica replace " +
        old);
    return static_cast<int>(setup::Status::kUsage);
  }
  bool leaving = false, begun = false;
  std::uint64_t goal = 0;
  for (ChangePrinter print_change;; poll(nullptr, 0, kLookEveryMs)) {
    const auto answers = ask_all(request, group);
    const Json summary = summarise(group, answers);
    const Json members = list_in(summary, "members");
    if (members.empty() || is_changing(answers)) {
      if (members.empty() && leaving) {
        print("replica " + old + " leaves; no replica of this host is in the group any more\n");
        return 0;
      }
      if (members.empty())
        print_change("waiting: no node reports the members; see crane-ctl status " + group);
      continue;
    }
    if (role_of(summary, request.fresh) == "analysis") {
      return refuse(group, "replica " + fresh + " is an analysis replica, which never votes");
    }
    const ReplaceStep step = next_step(members, request.replica, request.fresh, begun);
    if (step == ReplaceStep::kDone) {
      print("replica " + fresh + " has replaced replica " + old + "\n");
      return 0;
    }
    if (step == ReplaceStep::kNoMember) {
      return refuse(group, "replica " + old + " is not a member; see crane-ctl member list");
    }
    if (step == ReplaceStep::kNotNew) {
      return refuse(group, "replica " + fresh +
                               " votes already, so the group would become smaller; "
                               "name a replica that is no member, or use crane-ctl member remove " +
                               old);
    }
    if (step == ReplaceStep::kAdd) keep_one(request, group);
    if (step == ReplaceStep::kPromote && goal == 0) goal = number_in(summary, "commit");
    const RequestResult result = next_change(request, group, summary, step, goal);
    leaving |= step == ReplaceStep::kRemove && result.status == 0;
    begun |= result.status == 0;
    if (result.status == 0) {
      print_change(result.message);
    } else if (result.busy) {
      print_change("waiting: " + result.message +
                   (step == ReplaceStep::kPromote ? "; does its node run?" : ""));
    } else {
      print_message(result.message + "; run the same command again to continue from here");
      return result.status;
    }
  }
}

int drain_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const int replica = request.replica;
  const Starter starter = starter_of(request, group, replica);
  // If the replica is alone on its host and drained, no node reports the members.
  if (state_of(request, group, replica) != "drained") {
    if (const int bad = choose_reached(request, group); bad != 0) return bad;
    if (const int bad = drain(request, group, replica, starter); bad != 0) return bad;
  }
  print(name_of(replica) + " is drained; " + resume_hint(starter, replica) + "\n");
  return 0;
}

int resume_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Starter starter = starter_of(request, group, request.replica);
  if (!is_here(request, group, request.replica)) {
    if (const int bad = choose_here(request, group); bad != 0) return bad;
  } else if (starter == Starter::kCraneRun) {
    const Json summary = summary_of(request, group);
    // Without a leader crane-run decides, which knows the members, too.
    if (knows_members(summary)) {
      if (const int bad = check_member(request, group, summary); bad != 0) return bad;
    }
  }
  if (state_of(request, group, request.replica) == "ok") {
    print(name_of(request.replica) + " runs\n");
    return 0;
  }
  return bring_back(request, group, request.replica, starter, false);
}

// Drains the replica and starts it again in the same slot, as a new member with only a checkpoint.
int replace_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Starter starter = starter_of(request, group, request.replica);
  const bool drained = state_of(request, group, request.replica) == "drained";
  if (!drained || starter == Starter::kCraneRun) {
    if (const int bad = choose_here(request, group); bad != 0) return bad;
  }
  if (starter == Starter::kNone) {
    return refuse(group, "no program on this machine starts its node: stop the node of " +
                             name_of(request.replica) +
                             ", and start it with crane-node --forget-log");
  }
  // In a group of several hosts the leader requests a checkpoint when it is needed.
  if (starter == Starter::kCraneRun) keep_one(request, group);
  if (state_of(request, group, request.replica) == "ok") {
    if (const int bad = drain(request, group, request.replica, starter); bad != 0) return bad;
  }
  return bring_back(request, group, request.replica, starter, true);
}

Command one_replica(Request& r, const char* name, const char* help,
                    std::function<int(const Request&)> run) {
  return {
      name, help, {number_word("replica", r.replica, "its number"), group_word(r)}, {}, [&r, run] {
        return run(r);
      }};
}

}  // namespace

Command member_commands(Request& r) {
  const auto change = [&r](const char* name, const char* help) {
    return Command{name,
                   help,
                   {number_word("replica", r.replica, "its number"), group_word(r)},
                   {},
                   [&r, name] { return change_member(r, name); }};
  };
  return {"member",
          "the members of the group",
          {},
          {{"list",
            "the members and their progress",
            {all_groups_word(r), output_word(r)},
            {},
            [&r] { return list_members(r); }},
           change("add", "adds a replica, which gets the log and begins at a checkpoint"),
           change("promote", "lets a learner vote that has caught up"),
           change("remove", "removes a member; a leader hands the lead over first"),
           {"replace",
            "adds NEW, lets it vote when it has caught up, removes OLD; can be interrupted and "
            "repeated",
            {number_word("old", r.replica, "the replica to remove"),
             number_word("new", r.fresh, "the replica to add"), group_word(r)},
            {},
            [&r] { return replace_member(r); }}}};
}

Command replica_commands(Request& r) {
  return {"replica",
          "drains, resumes or replaces one replica",
          {},
          {one_replica(r, "drain",
                       "hands the lead over, then ends the replica's server and node in order",
                       drain_replica),
           one_replica(r, "resume", "starts a drained or lost replica again", resume_replica),
           one_replica(r, "replace", "restarts a replica as a new member, with only a checkpoint",
                       replace_replica)}};
}

}  // namespace crane::launcher
