// SPDX-License-Identifier: Apache-2.0
// crane-ctl member, replica and restore: who belongs to the group, and where its replicas begin.
//
// Each command looks what the group is like and does the next step, so it can be broken off and
// run again at any point.
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

using setup::say;
using Json = nlohmann::json;
using control::flag_in, control::list_in, control::number_in, control::object_in;
using control::replica_in, control::text_in;

namespace {

constexpr int kNoLeader = static_cast<int>(Health::kNoLeader);
constexpr std::int64_t kPatienceMs = 30'000;  // with a step that does not come about
constexpr std::int64_t kGoneMs = 5'000;       // a node that is away for so long does not come
constexpr int kLooks = 10;                    // at one who has caught up, in a row

std::string name_of(int replica) { return "replica " + std::to_string(replica); }

// Says each thing once.
class ChangePrinter {
 public:
  void operator()(const std::string& text) {
    if (text != last_message_) print((last_message_ = text) + "\n");
  }

 private:
  std::string last_message_;
};

// Who leads says that a change is not committed yet.
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

// What is known of a replica here; an empty object: nothing.
Json row_of(const Json& summary, int replica) {
  for (const Json& row : list_in(summary, "replicas")) {
    if (replica_in(row) == replica) return row;
  }
  return Json::object();
}

// A new replica that begins at a checkpoint is there in seconds: there should be one.
void keep_one(const Request& request, const std::string& group) {
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

int refuse(const std::string& group, const std::string& why) {
  say("refused: " + group + ": " + why);
  return kRefused;
}

// Hands the lead over when this replica has it.
int hand_over(const Request& request, const std::string& group, int replica) {
  const auto deadline = now_ms() + kPatienceMs;
  for (ChangePrinter tell; now_ms() < deadline; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    if (!summary["leader"].is_number()) continue;
    if (summary["leader"] != replica) return 0;
    const RequestResult told = request_of_leader(request, group, summary, {{"do", "transfer"}});
    if (told.status != 0 && !told.busy) {
      say(told.message);
      return told.status;
    }
    tell("the lead is handed over");
  }
  return refuse(group, name_of(replica) + " leads still; see crane-ctl status " + group);
}

// Whoever started it may take its time to hear of its end.
bool has_ended(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return !stat || stat->state == 'Z';
}

// "ok": it runs; "drained"; ..
std::string state_of(const Request& request, const std::string& group, int replica) {
  return text_in(row_of(summary_of(request, group), replica), "state");
}

// Its node and server end, in order.
int drain(const Request& request, const std::string& group, int replica, Starter starter) {
  const auto deadline = now_ms() + kPatienceMs;
  bool asked = false;
  pid_t node = 0;
  for (ChangePrinter tell;; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    const Json row = row_of(summary, replica);
    const std::string state = text_in(row, "state");
    // It says goodbye before it has ended its server.
    const bool ended = node <= 0 || has_ended(node);
    if (state == "drained" && ended) return 0;
    if (state == "node is gone" && !asked) {
      return refuse(group, name_of(replica) + " does not run; " + way_back(starter, replica));
    }
    if (asked && state == "ok" && static_cast<pid_t>(number_in(row, "pid")) != node) {
      return refuse(group, name_of(replica) +
                               " left, and its node was started again at once; tell what watches "
                               "the node to stop it instead");
    }
    if (now_ms() >= deadline) {
      return refuse(group, name_of(replica) + " does not end; see its node.log");
    }
    if (asked) continue;
    if (const int bad = hand_over(request, group, replica); bad != 0) return bad;
    node = static_cast<pid_t>(number_in(row, "pid"));
    const RequestResult told = ask_replica(request, group, replica, {{"do", "leave"}});
    asked = told.status == 0;
    if (asked) {
      tell(told.message);
    } else if (told.busy) {
      tell("waiting: " + told.message);
    } else {
      say(told.message);
      return told.status;
    }
  }
}

// While its node does not answer: why it will not; empty: it may.
std::string why_gone(const Request& request, const std::string& group, int replica,
                     std::int64_t& gone_ms) {
  if (gone_ms == 0) gone_ms = now_ms();
  const std::string what = name_of(replica) + " did not recover";
  const std::string see = "; see its node.log";
  const RequestResult agent = ask_agent(request, group, replica, {{"do", "state"}});
  if (agent.status == 0 && !agent.message.empty()) return what + ": " + agent.message + see;
  // One that fetches a checkpoint cannot be asked itself.
  const bool begins = agent.status == 0 && flag_in(agent.answer, "node");
  if (begins || agent.busy) gone_ms = now_ms();
  return now_ms() - gone_ms < kGoneMs ? "" : what + see;
}

// It follows or leads, and lacks nothing that only a checkpoint has.
bool is_fed(const Json& summary, const Json& row) {
  return summary["leader"].is_number() && number_in(row, "server_pid") > 0 &&
         !flag_in(row, "needs_checkpoint") && !flag_in(row, "catching_up");
}

// Until it runs, votes, and has done what the group had done when this was called.
int wait_until_back(const Request& request, const std::string& group, int replica,
                    Starter starter) {
  const bool alone = starter != Starter::kCraneRun;
  std::uint64_t goal = number_in(summary_of(request, group), "commit");
  std::int64_t gone_ms = 0;
  int looks = 0;
  for (ChangePrinter tell;; poll(nullptr, 0, kLookEveryMs)) {
    const Json summary = summary_of(request, group);
    const Json row = row_of(summary, replica);
    if (text_in(row, "state") != "ok") {
      const std::string why = why_gone(request, group, replica, gone_ms);
      looks = 0;
      if (why.empty()) continue;
      return refuse(group, why);
    }
    gone_ms = 0;
    const std::string role = role_of(summary, replica);
    // Alone on its host it hears from the leader how far the group is, not at once.
    looks = is_fed(summary, row) ? looks + 1 : 0;
    if (alone && looks == kLooks) goal = number_in(row, "commit");
    const bool knows = alone ? looks >= kLooks : looks > 0;
    const bool there = knows && number_in(row, "applied") >= goal;
    if (!there || role != "voter") {
      tell(there ? "waiting: it votes once its log has caught up"
                 : "waiting: its server takes in what it missed");
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
                  : ", it ran all inputs since the group began") +
          "\n");
    return 0;
  }
}

// Asks whoever starts nodes.
RequestResult ask_to_start(const Request& request, const std::string& group, int replica,
                           Starter starter, bool forgets) {
  switch (starter) {
    case Starter::kCraneRun:
      if (!forgets && request.checkpoint.empty()) {
        // One that waits for its next attempt needs no leader to be started.
        const RequestResult told =
            ask_crane_run(request, group, {{"do", "resume"}, {"replica", replica}});
        if (told.status == 0) return told;
      }
      return request_of_leader(request, group, summary_of(request, group),
                               {{"do", "bring_back"},
                                {"replica", replica},
                                {"forget", forgets},
                                {"checkpoint", request.checkpoint}});
    case Starter::kAgent:
      return ask_agent(request, group, replica, {{"do", "resume"}, {"forget", forgets}});
    case Starter::kNone:
      break;
  }
  return {kRefused, "refused: " + group + ": " + name_of(replica) +
                        " does not run, and nothing here starts nodes; " +
                        way_back(Starter::kNone, replica)};
}

int bring_back(const Request& request, const std::string& group, int replica, Starter starter,
               bool forgets) {
  const auto deadline = now_ms() + kPatienceMs;
  for (;; poll(nullptr, 0, kLookEveryMs)) {
    const RequestResult told = ask_to_start(request, group, replica, starter, forgets);
    // The answer to an earlier request may have come too late.
    const bool begun = told.busy && state_of(request, group, replica) == "ok";
    if (told.status == 0 || begun) {
      print((begun ? name_of(replica) + " is started" : told.message) + "\n");
      return wait_until_back(request, group, replica, starter);
    }
    if (told.busy && now_ms() < deadline) continue;
    say(told.message);
    return told.status;
  }
}

// The group, and that the replica is a member of it.
int choose_member(const Request& request, std::string& group) {
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Json summary = summary_of(request, group);
  if (list_in(summary, "members").empty() || !summary["leader"].is_number()) {
    say("no leader: " + group + ": nobody tells the members; see crane-ctl status " + group);
    return kNoLeader;
  }
  const std::string role = role_of(summary, request.replica);
  if (role == "analysis") {
    return refuse(group,
                  name_of(request.replica) +
                      " is an analysis replica: it serves no client, and crane-run brings it "
                      "back; crane-ctl member remove " +
                      std::to_string(request.replica) + " ends it");
  }
  if (!role.empty()) return 0;
  return refuse(group, name_of(request.replica) + " is no member; see crane-ctl member list");
}

// A member whose files are on this machine.
int choose_here(const Request& request, std::string& group) {
  if (const int bad = choose_member(request, group); bad != 0) return bad;
  if (is_here(request, group, request.replica)) return 0;
  return refuse(group, name_of(request.replica) + " is on another host; run this there");
}

// The named checkpoint is here and well; 0, or the exit status after a message.
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
    say((verdict == Verdict::kForeign ? "not of this group: " : "damaged: ") + group + ": " +
        sentence);
    return kDamaged;
  }
  say("no such checkpoint: " + group + ": " + request.checkpoint +
      ": no replica has it here; see crane-ctl checkpoint list " + group);
  return kNoSuchCheckpoint;
}

// What `member replace` asks the leader for.  `goal`: what the new one must have done to vote.
RequestResult next_change(const Request& request, const std::string& group, const Json& summary,
                          ReplaceStep step, std::uint64_t goal) {
  const bool removes = step == ReplaceStep::kRemove;
  const char* change = removes ? "remove" : step == ReplaceStep::kAdd ? "add" : "promote";
  const Json row = row_of(summary, request.fresh);
  // Of another host nobody tells.
  const bool runs = !row.contains("server_pid") || number_in(row, "server_pid") > 0;
  if (step == ReplaceStep::kPromote && (!runs || number_in(row, "applied") < goal)) {
    return {kRefused, name_of(request.fresh) + " takes in what the others have done", true};
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
                  "only crane-run on one host does that; with several hosts crane-ctl "
                  "replica drain and resume begin at the host's own newest checkpoint");
  }
  if (!request.checkpoint.empty()) {
    if (const int bad = check_named(request, group); bad != 0) return bad;
  } else if (checkpoint::find_kept(request.home_of(group)).checkpoints.empty()) {
    say("no such checkpoint: " + group + ": there is none; crane-ctl checkpoint now makes one");
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
    if (role_of(summary_of(request, group), request.replica).empty()) keep_one(request, group);
  }
  return ask_leader(request, {{"do", "member"}, {"change", change}, {"replica", request.replica}});
}

// Says everything once: what goes on, and what it waits for.
int replace_member(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string old = std::to_string(request.replica), fresh = std::to_string(request.fresh);
  if (old == fresh) {
    say("command line: crane-ctl: a replica cannot replace itself; name two, or use crane-ctl "
        "replica replace " +
        old);
    return static_cast<int>(setup::Status::kUsage);
  }
  bool leaving = false;
  std::uint64_t goal = 0;
  for (ChangePrinter tell;; poll(nullptr, 0, kLookEveryMs)) {
    const auto answers = ask_all(request, group);
    const Json summary = summarise(group, answers);
    const Json members = list_in(summary, "members");
    if (members.empty() || is_changing(answers)) {
      if (members.empty() && leaving) {
        print("replica " + old + " leaves; nobody on this host is in the group any more\n");
        return 0;
      }
      if (members.empty()) tell("waiting: nobody tells the members; see crane-ctl status " + group);
      continue;
    }
    if (role_of(summary, request.fresh) == "analysis") {
      return refuse(group, "replica " + fresh + " is an analysis replica, which never votes");
    }
    const ReplaceStep step = next_step(members, request.replica, request.fresh);
    if (step == ReplaceStep::kDone) {
      print("replica " + fresh + " has replaced replica " + old + "\n");
      return 0;
    }
    if (step == ReplaceStep::kNoMember) {
      return refuse(group, "replica " + old + " is no member; see crane-ctl member list");
    }
    if (step == ReplaceStep::kAdd) keep_one(request, group);
    if (step == ReplaceStep::kPromote && goal == 0) goal = number_in(summary, "commit");
    const RequestResult told = next_change(request, group, summary, step, goal);
    leaving |= step == ReplaceStep::kRemove && told.status == 0;
    if (told.status == 0) {
      tell(told.message);
    } else if (told.busy) {
      tell("waiting: " + told.message +
           (step == ReplaceStep::kPromote ? "; does its node run?" : ""));
    } else {
      say(told.message + "; the same command goes on from here, wherever it was broken off");
      return told.status;
    }
  }
}

int drain_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const int replica = request.replica;
  const Starter starter = starter_of(request, group, replica);
  // Alone on its host nobody tells the members then.
  if (state_of(request, group, replica) != "drained") {
    if (const int bad = choose_here(request, group); bad != 0) return bad;
    if (const int bad = drain(request, group, replica, starter); bad != 0) return bad;
  }
  print(name_of(replica) + " is drained; " + way_back(starter, replica) + "\n");
  return 0;
}

int resume_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Starter starter = starter_of(request, group, request.replica);
  const bool alone = is_here(request, group, request.replica) && starter != Starter::kCraneRun;
  if (!alone) {
    if (const int bad = choose_here(request, group); bad != 0) return bad;
  }
  if (state_of(request, group, request.replica) == "ok") {
    print(name_of(request.replica) + " runs\n");
    return 0;
  }
  return bring_back(request, group, request.replica, starter, false);
}

// In its own place: it is drained, and recovers as somebody who has nothing but a checkpoint.
int replace_replica(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Starter starter = starter_of(request, group, request.replica);
  const bool drained = state_of(request, group, request.replica) == "drained";
  if (!drained || starter == Starter::kCraneRun) {
    if (const int bad = choose_here(request, group); bad != 0) return bad;
  }
  if (starter == Starter::kNone) {
    return refuse(group, "nothing here starts nodes: stop the node of " + name_of(request.replica) +
                             ", and start it with crane-node --forget-log");
  }
  // Of several hosts the leader has one taken when it is needed.
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

}  // namespace crane::launcher
