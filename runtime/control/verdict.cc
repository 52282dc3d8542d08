// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/verdict.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "dmt/base/join.h"
#include "runtime/control/schema.h"

namespace crane::control {
namespace {

using Json = nlohmann::json;
using Member = ReplicaView::Member;
using Contact = ReplicaView::Contact;

std::string progress_text(const Progress& p) {
  const std::string text = text_of(p, Unit::kEntries);
  return text.empty() ? text : ", " + text;
}

std::string list_of(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

std::string name_of(const ReplicaView& r) { return "replica " + std::to_string(r.replica); }

bool counts(const ReplicaView& r) { return r.member != Member::kOther; }
// Whether the replica holds the log, its acceptor answers, and it has room for more entries.
bool there(const ReplicaView& r) {
  const bool answers = r.seen == Contact::kReported || r.seen == Contact::kNotReported;
  const bool accepts_log = !r.readiness.needs_checkpoint && !r.readiness.no_room;
  return r.member == Member::kVoter && answers && r.connected && accepts_log;
}

// Why the replica could not lead and serve at once; empty: it could (VERDICT-2).
std::string lacks(const ReplicaView& r) {
  switch (r.seen) {
    case Contact::kReported:
      break;
    case Contact::kNotReported:
      return "has not reported its progress";
    case Contact::kStarts:
      return "starts";
    case Contact::kSilent:
      return "does not answer";
    case Contact::kDenied:
      return "may not be queried";
    case Contact::kDrained:
      return "is drained";
    case Contact::kNotYet:
      return "has not started yet";
    case Contact::kGone:
      return "is gone";
    case Contact::kCutOff:
      return "cannot be reached from here";
  }
  if (!r.connected) return "is not connected to the leader";
  const std::string why = why_not_ready(r.readiness);
  if (!why.empty()) return why;
  if (r.member == Member::kReturning) return "lost its memory, and does not vote yet";
  return r.receives_log ? "" : "does not get the log yet";
}

// Whether its process does not take part now.  If others regard it as their leader, that will soon
// change.
bool is_absent(const ReplicaView& r) {
  return r.seen == Contact::kGone || r.seen == Contact::kNotYet || r.seen == Contact::kStarts ||
         r.seen == Contact::kDrained;
}

// Whether the replica is still expected: it has had no time to come yet, or it reports progress.
bool will_arrive(const ReplicaView& r, const GroupView& group) {
  const bool early = group.no_quorum.empty();
  if (r.seen == Contact::kStarts || (r.seen == Contact::kNotYet && early)) return true;
  return r.seen == Contact::kReported && (r.readiness.recovers || (r.readiness.starts && early));
}

Verdict not_serving(Health health, std::string text) {
  Verdict v;
  v.health = health;
  v.may_lose = 0;
  v.text = std::move(text);
  return v;
}

Verdict replaying(const Progress& progress) {
  return not_serving(Health::kNotServing, "not serving: replaying" + progress_text(progress));
}

Verdict without_leader(const GroupView& group) {
  std::vector<std::string> starting;
  const ReplicaView* furthest = nullptr;
  std::size_t voters = 0, present = 0;
  for (const ReplicaView& r : group.replicas) {
    voters += counts(r);
    present += counts(r) && (there(r) || will_arrive(r, group));
    if (!counts(r) || !will_arrive(r, group)) continue;
    starting.push_back(std::to_string(r.replica));
    const bool replays = r.seen == Contact::kReported && r.readiness.recovers;
    if (replays &&
        (furthest == nullptr || r.readiness.progress.done > furthest->readiness.progress.done)) {
      furthest = &r;
    }
  }
  if (present * 2 > voters && furthest != nullptr) return replaying(furthest->readiness.progress);
  if (present * 2 > voters && !starting.empty()) {
    return not_serving(Health::kStarting,
                       "starting: waits for " +
                           std::string(starting.size() == 1 ? "replica " : "replicas ") +
                           joined(starting));
  }
  const bool quorum = group.no_quorum.rfind("no quorum", 0) == 0;
  return not_serving(Health::kNoLeader,
                     quorum ? "NOT SERVING: no quorum" : "NOT SERVING: no leader");
}

// The verdict for a leader without a server.
Verdict without_server(const ReplicaView& leader, const GroupView& group) {
  std::vector<std::string> away;
  for (const ReplicaView& r : group.replicas) {
    if (!counts(r) || (r.seen == Contact::kReported && r.readiness.acceptor_only)) continue;
    if (there(r)) {
      return not_serving(Health::kNotServing, "not serving: " + name_of(leader) +
                                                  " leads without a server and hands over");
    }
    away.push_back(std::to_string(r.replica));
  }
  const auto unused =
      std::find_if(group.replicas.begin(), group.replicas.end(),
                   [](const ReplicaView& r) { return counts(r) && !r.readiness.why_not.empty(); });
  if (away.empty() && unused != group.replicas.end()) {
    return not_serving(Health::kNotServing, "NOT SERVING: no replica has a server; " +
                                                name_of(*unused) + ": " +
                                                unused->readiness.why_not);
  }
  if (!away.empty()) {
    return not_serving(Health::kNotServing,
                       "NOT SERVING: no available replica has a server; waits for " +
                           std::string(away.size() == 1 ? "replica " : "replicas ") + joined(away));
  }
  return not_serving(Health::kNotServing,
                     "NOT SERVING: the servers' state is lost, because no checkpoint reaches the "
                     "log; stop the group and start it with --force-new-group to continue without");
}

// The verdict for a leader that does not serve.
Verdict unready(const ReplicaView& leader, const GroupView& group) {
  const std::string leader_name = name_of(leader);
  if (leader.seen == Contact::kNotReported) {
    return not_serving(Health::kNotServing,
                       leader_name + " leads, but has not reported whether it serves");
  }
  if (leader.seen != Contact::kReported) {
    return not_serving(Health::kNoLeader,
                       "NOT SERVING: " + leader_name + ", which leads, " + lacks(leader));
  }
  const Readiness& readiness = leader.readiness;
  if (readiness.acceptor_only) return without_server(leader, group);
  if (readiness.recovers) return replaying(readiness.progress);
  if (readiness.starts) {
    return not_serving(Health::kStarting,
                       "starting: the server of " + leader_name +
                           (readiness.runs ? " listens on no port yet" : " has not begun"));
  }
  if (readiness.no_room) {
    return not_serving(Health::kNotServing, "NOT SERVING: inputs wait: " + leader_name +
                                                ", which leads, has no room for them");
  }
  if (!readiness.why_not.empty()) {
    return not_serving(Health::kNotServing, "NOT SERVING: its server makes no progress");
  }
  if (readiness.paced) {
    return not_serving(Health::kNotServing,
                       "not serving: clients wait for a majority's servers to catch up, or for a "
                       "checkpoint");
  }
  return not_serving(Health::kNotServing, "not serving: " + leader_name +
                                              " leads, but its server does not know that yet");
}

// Whether the leader's server has not taken entries for long that another's has: it is stopped or
// starved.
bool stands(const ReplicaView& leader, const GroupView& group) {
  if (leader.readiness.lag_ms <= kStalledMs) return false;
  return std::any_of(group.replicas.begin(), group.replicas.end(), [&](const ReplicaView& r) {
    return r.replica != leader.replica && there(r) && lacks(r).empty();
  });
}

// How many replicas, any of them, may be lost so that the others are a majority and one serves at
// once.
std::int64_t losses(std::int64_t all, std::int64_t present, std::int64_t ready) {
  return std::max<std::int64_t>(0, std::min(present - (all / 2 + 1), ready - 1));
}

struct Voters {
  std::int64_t all = 0;     // replicas that vote
  std::int64_t belong = 0;  // replicas that vote, or will vote again
  std::int64_t there = 0;   // replicas that can follow a leader now
  std::int64_t ready = 0;   // replicas that could lead, and serve at once
  bool whole = true;        // no replica is away or recovers
  std::vector<std::string> notes;
};

Voters voters_of(const GroupView& group) {
  Voters v;
  for (const ReplicaView& r : group.replicas) {
    // A learner may be late, and an analysis tool sends no report.
    const bool away = r.seen != Contact::kReported && r.seen != Contact::kNotReported;
    if (!counts(r) && !away) continue;
    const std::string why = lacks(r);
    const bool late = r.seen == Contact::kReported && r.readiness.late() && !r.readiness.recovers;
    if (!why.empty()) v.notes.push_back(name_of(r) + " " + why);
    if (!why.empty() && !late) v.whole = false;
    v.all += r.member == Member::kVoter;
    v.belong += counts(r);
    v.there += there(r);
    v.ready += there(r) && why.empty();
  }
  return v;
}

std::string text_of(const GroupView& group, const Voters& v, std::int64_t spare) {
  std::string text = "serving, " + std::to_string(v.there) + " of " + std::to_string(v.belong);
  if (!group.alarm.empty()) text += ", BUT THE REPLICAS DIFFER";
  const std::string notes = list_of(v.notes);
  if (v.belong == 1) return text + ", NOT FAULT TOLERANT: its loss stops it";
  if (spare > 0) {
    text += ", fault tolerant" +
            (spare > 1 ? ": " + std::to_string(spare) + " may be lost" : std::string());
    return text + (v.whole ? "" : "; " + notes);
  }
  if (losses(v.all, v.there, v.there) > 0) return text + ", but not yet fault tolerant: " + notes;
  return text + ": ONE MORE LOSS STOPS IT" + (notes.empty() ? "" : "; " + notes);
}

bool all_drained(const GroupView& group) {
  return !group.replicas.empty() &&
         std::all_of(group.replicas.begin(), group.replicas.end(),
                     [](const ReplicaView& r) { return r.seen == Contact::kDrained; });
}

}  // namespace

std::string why_not_ready(const Readiness& readiness) {
  if (readiness.needs_checkpoint) return "lacks entries that left the log";
  if (readiness.acceptor_only)
    return "votes without a server: it waits for a checkpoint to begin at";
  // CRIU may take long.
  if (readiness.recovers && !readiness.runs) return "starts its server, which then replays";
  if (readiness.recovers) return "replays" + progress_text(readiness.progress);
  if (readiness.no_room) return "has no room";
  if (!readiness.runs) return readiness.starts ? "starts its server" : "has no server: it ended";
  if (readiness.late())
    return "is " + grouped(static_cast<std::uint64_t>(readiness.lag_ms)) + " ms behind";
  return "";
}

const char* name(Health health) noexcept {
  switch (health) {
    case Health::kWell:
      return "well";
    case Health::kDegraded:
      return "degraded";
    case Health::kDrained:
      return "drained";
    case Health::kStarting:
      return "starting";
    case Health::kNotServing:
      return "not serving";
    case Health::kNoLeader:
      return "no leader";
  }
  return "?";
}

Verdict verdict_of(const GroupView& group) {
  if (all_drained(group)) {
    Verdict v =
        not_serving(Health::kDrained, "drained: the replicas of this machine wait for resume");
    v.may_lose.reset();
    return v;
  }
  const auto leader =
      std::find_if(group.replicas.begin(), group.replicas.end(),
                   [&group](const ReplicaView& r) { return r.replica == group.leader; });
  Voters voters = voters_of(group);
  Verdict v;
  // VERDICT-1
  if (leader == group.replicas.end() || is_absent(*leader)) {
    v = without_leader(group);
  } else if (!group.no_quorum.empty()) {
    v = not_serving(Health::kNoLeader, "NOT SERVING: no quorum");
  } else if (leader->seen != Contact::kReported || !leader->readiness.takes_clients ||
             leader->readiness.no_room || leader->readiness.paced ||
             !leader->readiness.why_not.empty()) {
    v = unready(*leader, group);
  } else if (stands(*leader, group)) {
    v = not_serving(Health::kNotServing, "NOT SERVING: the server of " + name_of(*leader) +
                                             ", which leads, " + lacks(*leader));
  } else {
    v.serving = true;
    v.sound = group.alarm.empty();
    const std::int64_t spare = losses(voters.all, voters.there, voters.ready);
    // A group of two members has all that it can have, and stops at the next loss.
    const bool full =
        spare == voters.belong - (voters.belong / 2 + 1) && (spare > 0 || voters.belong == 1);
    v.health =
        v.sound && voters.whole && full && !group.unsupervised ? Health::kWell : Health::kDegraded;
    v.text = text_of(group, voters, spare);
    v.may_lose = spare;
  }
  if (!group.knows_members) {
    v.may_lose.reset();
    if (v.serving) {
      v.text = "serving; the number of tolerable losses is unknown";
    }
  }
  if (!group.alarm.empty()) voters.notes.push_back("the replicas differ: " + group.alarm);
  if (!group.no_checkpoints.empty()) {
    voters.notes.push_back("no checkpoints are taken: " + group.no_checkpoints);
  }
  v.notes = std::move(voters.notes);
  return v;
}

// --- JSON ---------------------------------------------------------------------------------------

Json to_json(const Verdict& v) {
  return {{"health", name(v.health)}, {"serving", v.serving}, {"text", v.text}, {"notes", v.notes}};
}

Json progress_json(const Readiness& readiness) {
  if (!readiness.recovers && !readiness.acceptor_only) return {};
  return to_json(readiness.progress);
}

Json to_json(const Readiness& readiness) {
  return {{"runs", readiness.runs},
          {"starts", readiness.starts},
          {"takes_clients", readiness.takes_clients},
          {"recovers", readiness.recovers},
          {"needs_checkpoint", readiness.needs_checkpoint},
          {"acceptor_only", readiness.acceptor_only},
          {"paced", readiness.paced},
          {"no_room", readiness.no_room},
          {"late", readiness.late()},
          {"lag_ms", readiness.lag_ms},
          {"progress", progress_json(readiness)},
          {"why_not", readiness.why_not.empty() ? Json() : Json(readiness.why_not)}};
}

std::optional<Readiness> readiness_in(const Json& json) {
  const Json& object = object_in(json, "readiness");
  if (object.empty()) return std::nullopt;
  Readiness readiness;
  readiness.runs = flag_in(object, "runs");
  readiness.starts = flag_in(object, "starts");
  readiness.takes_clients = flag_in(object, "takes_clients");
  readiness.recovers = flag_in(object, "recovers");
  readiness.needs_checkpoint = flag_in(object, "needs_checkpoint");
  readiness.acceptor_only = flag_in(object, "acceptor_only");
  readiness.paced = flag_in(object, "paced");
  readiness.no_room = flag_in(object, "no_room");
  readiness.held = !flag_in(object, "late");
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  readiness.lag_ms = static_cast<std::int64_t>(std::min(number_in(object, "lag_ms"), kMost));
  readiness.why_not = text_in(object, "why_not");
  readiness.progress = progress_in(object_in(object, "progress"));
  return readiness;
}

}  // namespace crane::control
