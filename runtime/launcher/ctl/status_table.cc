// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/status_table.h"
#include "runtime/launcher/ctl/plain_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "dmt/base/join.h"
#include "runtime/control/schema.h"
#include "runtime/control/verdict.h"
#include "runtime/launcher/ctl/group_view.h"
#include "runtime/launcher/ctl/operations.h"
#include "runtime/launcher/ctl/plain_answers.h"
#include "runtime/launcher/ctl/sizes.h"
#include "runtime/launcher/text_table.h"
#include "runtime/supervise/ends.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using control::list_in, control::object_in, control::replica_in, control::text_in;

const char* name(Reply reply) {
  switch (reply) {
    case Reply::kAnswer:
      return "ok";
    case Reply::kAbsent:
      return "node is gone";
    case Reply::kDenied:
      return "not permitted";
    case Reply::kSilent:
      return "does not answer";
    case Reply::kDrained:
      return "drained";
    case Reply::kStarts:
      return "starts";
    case Reply::kUnreachable:
      return "unreachable";
    case Reply::kOtherSecret:
      return "another secret";
    case Reply::kOtherReplica:
      return "another replica";
    case Reply::kLost:
      return "ended";
  }
  return "?";
}

std::uint64_t number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>()
         : found != json.end() && found->is_number_integer()
             ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, found->get<std::int64_t>()))
             : 0;
}

// The row of a replica of another machine, from the status of `witness`.
Json remote(int replica, const Json* witness, std::uint64_t commit) {
  Json row{{"replica", replica}, {"state", "on another host"}};
  if (witness == nullptr) return row;
  for (const Json& peer : list_in(*witness, "peers")) {
    if (replica_in(peer) != replica) continue;
    row.update(peer);
    if (!peer.contains("applied")) continue;
    const std::uint64_t applied = number(peer, "applied");
    row["lag_entries"] = commit > applied ? commit - applied : 0;
  }
  return row;
}

// Whether the members are known and the replica is not one: then its missing node is no fault.
bool was_removed(const Json& summary, int replica) {
  const Json& members = list_in(summary, "members");
  if (members.empty()) return false;
  return std::none_of(members.begin(), members.end(),
                      [&](const Json& m) { return replica_in(m) == replica; });
}

// Adds what only the leader knows of the other members, and the answers of this machine's nodes.
void complete_members(Json& members, const Json* leader, const std::map<int, NodeAnswer>& answers) {
  for (Json& member : members) {
    const int replica = replica_in(member);
    if (leader != nullptr) {
      for (const Json& peer : list_in(*leader, "peers")) {
        if (replica_in(peer) == replica) member.update(peer);
      }
    }
    const auto own = answers.find(replica);
    if (own == answers.end() || own->second.reply != Reply::kAnswer) continue;
    for (const char* key : {"last", "applied"}) member[key] = number(own->second.status, key);
  }
}

// The group's state from all answers.
struct Overview {
  std::uint64_t commit = 0, view = 0;
  std::uint64_t leader = kNoReplicaNumber;
  std::size_t replicas = 0;
  bool any = false;
};

// Only followers and the leader itself know the leader; the answer of the newest view counts.
Overview overview_of(const std::map<int, NodeAnswer>& answers) {
  Overview overview;
  if (!answers.empty()) overview.replicas = static_cast<std::size_t>(answers.rbegin()->first) + 1;
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    overview.any = true;
    overview.commit = std::max(overview.commit, number(answer.status, "commit"));
    overview.replicas = std::max<std::size_t>(overview.replicas, number(answer.status, "replicas"));
    if (control::number_in(answer.status, "leader", kNoReplicaNumber) < kNoReplicaNumber &&
        number(answer.status, "view") >= overview.view) {
      overview.view = number(answer.status, "view");
      overview.leader = number(answer.status, "leader");
    }
  }
  return overview;
}

Json row_of(int replica, const std::map<int, NodeAnswer>& answers, const Json* witness,
            std::uint64_t commit) {
  const auto found = answers.find(replica);
  if (found == answers.end()) return remote(replica, witness, commit);
  if (is_cut_off(found->second.reply)) {
    Json row = remote(replica, witness, commit);
    row["state"] = name(found->second.reply);
    return row;
  }
  const bool answered = found->second.reply == Reply::kAnswer;
  Json row = answered ? found->second.status : Json::object();
  row["replica"] = replica;
  row["state"] = name(found->second.reply);
  if (!found->second.here) row["over_link"] = true;
  if (found->second.returns.is_object()) row["returns"] = found->second.returns;
  if (!found->second.operations.empty()) row["operations"] = found->second.operations;
  if (answered) {
    const std::uint64_t applied = number(row, "applied");
    row["lag_entries"] = commit > applied ? commit - applied : 0;
  }
  return row;
}

// Adds the fields of the whole group, from answers of the newest view; the leader's have priority.
void add_group(Json& summary, const std::map<int, NodeAnswer>& answers, const Json* leader,
               std::uint64_t view) {
  for (const auto& [replica, answer] : answers) {
    if (answer.reply != Reply::kAnswer) continue;
    if (const auto why = answer.status.find("no_quorum");
        why != answer.status.end() && why->is_string()) {
      summary["no_quorum"] = fmt::format("replica {}: {}", replica, why->get<std::string>());
    }
    if (const std::string why = text_in(answer.status, "no_room"); !why.empty()) {
      summary["no_room"] = fmt::format("replica {}: {}", replica, why);
    }
    for (const char* key : {"fabric", "durability", "program"}) {
      if (answer.status.contains(key)) summary[key] = answer.status[key];
    }
    const bool leads = &answer.status == leader;
    if (number(answer.status, "view") != view || (!leads && summary.contains("members"))) continue;
    for (const char* key : {"members", "last_election", "detection", "verified", "not_serving"}) {
      if (answer.status.contains(key)) summary[key] = answer.status[key];
    }
  }
  if (summary.contains("members")) complete_members(summary["members"], leader, answers);
}

}  // namespace

Json summarise(const std::string& group, const std::map<int, NodeAnswer>& answers,
               const std::string& unsupervised) {
  const Json* leader = leader_of(answers);
  const Overview overview = overview_of(answers);
  Json summary{{"version", control::kVersion},
               {"group", group},
               {"leader", overview.leader < kNoReplicaNumber ? Json(overview.leader) : Json()},
               {"not_serving", nullptr},
               {"replicas", Json::array()}};
  add_group(summary, answers, leader, overview.view);
  for (int i = 0; i < static_cast<int>(overview.replicas); ++i) {
    Json row = row_of(i, answers, witness_of(answers), overview.commit);
    const bool away =
        row["state"] == name(Reply::kAbsent) || row["state"] == name(Reply::kUnreachable);
    if (away && was_removed(summary, i)) row["state"] = "no member";
    summary["replicas"].push_back(std::move(row));
  }
  summary["view"] = overview.leader < kNoReplicaNumber ? Json(overview.view) : Json();
  summary["commit"] = overview.any ? Json(overview.commit) : Json();
  if (!unsupervised.empty()) {
    summary["supervised"] = false;
    summary["unsupervised"] = unsupervised;
  }
  const control::Verdict verdict = control::verdict_of(seen_by(answers, summary));
  summary["verdict"] = control::to_json(verdict);
  summary["health"] = control::name(verdict.health);
  summary["may_lose"] = verdict.may_lose ? Json(*verdict.may_lose) : Json();
  return summary;
}

Health health_of(const Json& summary) {
  const std::string word = text_in(summary, "health");
  return word == "well"                                ? Health::kWell
         : word == "not serving" || word == "starting" ? Health::kNotServing
         : word == "degraded" || word == "drained"     ? Health::kDegraded
                                                       : Health::kNoLeader;
}

namespace {

// The kinds and numbers of the server's unsupported requests; "": none.
std::string unsupported_of(const Json& row) {
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"datagrams", "datagrams to others dropped"},
      {"udp_ports", "UDP ports opened that no client reaches"},
      {"sandboxes", "sandboxes not applied"}};
  const Json& counts = object_in(row, "unsupported");
  std::vector<std::string> kinds;
  for (const auto& [key, words] : kKinds) {
    if (number(counts, key) == 0) continue;
    kinds.push_back(std::to_string(number(counts, key)) + " " + words);
  }
  return kinds.empty()
             ? ""
             : "unsupported: " + joined(kinds) + "; runtime.log of each replica names them\n";
}

// The first few calls of one replica that bypassed libcrane.so.
std::string unhooked_of(const Json& row) {
  std::string text = fmt::format("unhooked calls: {}\n", cell(row, "unhooked_calls"));
  for (const Json& u : list_in(row, "unhooked")) {
    text += fmt::format("  {} at {}+{}: {}, {} times\n", cell(u, "call"), cell(u, "object"),
                        cell(u, "offset"), cell(u, "outcome"), cell(u, "count"));
  }
  return text + unsupported_of(row);
}

// Shows the replica with the most calls: the numbers differ only while a replica is behind.
std::string unhooked_text(const Json& summary) {
  const Json* most = nullptr;
  for (const Json& row : summary["replicas"]) {
    if (!row.contains("unhooked_calls")) continue;
    if (most == nullptr || number(row, "unhooked_calls") > number(*most, "unhooked_calls")) {
      most = &row;
    }
  }
  return most == nullptr ? "" : unhooked_of(*most);
}

// Shows the first replica with soft barriers: arrivals differ only while a replica is behind.
std::string soft_barriers_text(const Json& summary) {
  for (const Json& row : summary["replicas"]) {
    if (!row.contains("soft_barriers")) continue;
    std::string text;
    for (const Json& l : list_in(row, "soft_barriers")) {
      text +=
          fmt::format("soft barrier {} ({}): {}; {} threads or {} us; {} arrivals in {} rounds\n",
                      cell(l, "function"), cell(l, "origin"), cell(l, "state"), cell(l, "count"),
                      cell(l, "timeout_us"), cell(l, "arrivals"), cell(l, "rounds"));
    }
    return text;
  }
  return "";
}

// A text of a row about the recovery of its replica; "": it has none.
std::string of_recovery(const Json& row, const char* what) {
  return text_in(object_in(row, "recovery"), what);
}

bool has_server(const Json& row) {
  const auto pid = row.find("server_pid");
  return pid == row.end() || !pid->is_null();
}

// The checkpoints of this machine's replicas: the newest published one, the newest abandoned one if
// no later one was published, and the replicas that recovered from a checkpoint.
std::string checkpoints_text(const Json& summary) {
  const Json *published = nullptr, *failed = nullptr;
  std::uint64_t last = 0, gave_up = 0;
  std::string returned;
  for (const Json& row : summary["replicas"]) {
    const auto found = row.find("checkpoint");
    if (found == row.end()) continue;
    if (number(*found, "last") > last) {
      published = &row;
      last = number(*found, "last");
    }
    if (number(*found, "gave_up") > gave_up) {
      failed = &row;
      gave_up = number(*found, "gave_up");
    }
    if (number(*found, "restored_at") > 0) {
      const bool restarted = of_recovery(row, "came_back_by") == "restart";
      returned += fmt::format("replica {} {} the checkpoint at entry {}{}\n", cell(row, "replica"),
                              has_server(row) ? "recovered from" : "begins at",
                              number(*found, "restored_at"),
                              restarted ? ", with a new server on its files" : "");
    }
  }
  std::string text;
  for (const Json& row : summary["replicas"]) {
    const std::string why = text_in(object_in(row, "checkpoint"), "none_because");
    if (!why.empty()) text = "none are taken: " + why;
  }
  if (published != nullptr) {
    text = fmt::format("entry {} by replica {}, held for {} ms", last, cell(*published, "replica"),
                       number((*published)["checkpoint"], "held_us") / 1000);
  }
  if (failed != nullptr && gave_up > last) {
    text +=
        fmt::format("{}replica {} gave up the one at entry {}: {}", text.empty() ? "" : "; ",
                    cell(*failed, "replica"), gave_up, cell((*failed)["checkpoint"], "why_not"));
  }
  return (text.empty() ? "" : "checkpoint: " + text + "\n") + returned;
}

// The findings and the progress of analysis replicas.
std::string analysis_text(const Json& summary) {
  std::string text;
  for (const Json& row : summary["replicas"]) {
    const Json& a = object_in(row, "analysis");
    if (a.empty()) continue;
    text += fmt::format(
        "analysis by replica {}: {}, entry {} of {}, {} behind ({} MB on disk); {} "
        "findings",
        cell(row, "replica"), cell(a, "tool"), cell(a, "entry"), cell(a, "got"), cell(a, "behind"),
        number(a, "spooled_bytes") >> 20, cell(a, "findings"));
    if (number(a, "reports") > 0) text += ", report: " + cell(a, "report");
    const Json& differs = object_in(a, "differs");
    text += !differs.empty()
                ? fmt::format("; differs from the group's at entry {}: {}\n",
                              cell(differs, "index"), cell(differs, "text"))
                : fmt::format("; {} digests equal to the group's, the last at entry {}\n",
                              cell(a, "digests_equal"), cell(a, "equal_to"));
    for (const Json& line : list_in(a, "first_findings")) {
      text += "  " + (line.is_string() ? line.get<std::string>() : line.dump()) + "\n";
    }
    if (const std::string why = text_in(a, "ended"); !why.empty()) {
      text += "  it has stopped: " + why + "\n";
    }
  }
  return text;
}

// The absent replicas and the times of their next starts.
std::string returns_text(const Json& summary) {
  std::string text;
  for (const Json& row : summary["replicas"]) {
    const Json& returns = object_in(row, "returns");
    if (returns.empty()) continue;
    text += fmt::format(
        "replica {} recovers {}, after {} ends in a row ({} starts it at once): {}\n",
        cell(row, "replica"),
        supervise::when_text(static_cast<std::int64_t>(number(returns, "next_in_ms"))),
        cell(returns, "attempts"), text_in(returns, "command"), text_in(returns, "why"));
  }
  if (summary.contains("ended")) {
    text += "ended: " + text_in(summary, "ended") + "; crane-ctl logs has its messages\n";
  }
  return text + (summary.contains("unsupervised")
                     ? "unsupervised: " + summary["unsupervised"].get<std::string>() + "\n"
                     : std::string());
}

// What this machine's replicas carry out now.
std::string under_way_text(const Json& summary) {
  std::string text;
  for (const Json& row : summary["replicas"]) text += operations_text(operations_in(row));
  return text;
}

// How a replica that is lost now would recover, and which replicas recovered without a checkpoint.
std::string recovery_text(const Json& summary) {
  const Json* best = nullptr;
  std::pair<std::uint64_t, bool> best_rank;
  std::string returned;
  for (const Json& row : summary["replicas"]) {
    if (of_recovery(row, "tier").empty()) continue;
    if (of_recovery(row, "came_back_by") == "replay") {
      returned += "replica " + cell(row, "replica") +
                  (has_server(row) ? " recovered by running all inputs again\n"
                                   : " runs all inputs again\n");
    }
    // A replica that has tried knows the reason.
    const std::pair rank{number(row["recovery"], "entry"), !of_recovery(row, "refused").empty()};
    if (best == nullptr || rank > best_rank) {
      best = &row;
      best_rank = rank;
    }
  }
  if (best == nullptr) return "";
  const std::string tier = of_recovery(*best, "tier"), why = of_recovery(*best, "why");
  std::string text = "recovery: " + tier;
  if (tier == "criu") text += fmt::format(", the server as at entry {}", best_rank.first);
  if (tier == "restart") {
    text += fmt::format(", a new server on the files as at entry {}", best_rank.first);
  }
  if (tier == "replay") text += ", all inputs again";
  return text + (why.empty() ? "" : ": " + why) + "\n" + returned;
}

// Details for which the first line has no room.
std::string serving_text(const Json& summary) {
  std::string text;
  if (const std::string why = text_in(summary, "no_quorum"); !why.empty()) text += why + "\n";
  if (const std::string why = text_in(summary, "no_room"); !why.empty()) {
    text += "no room: " + why + "; inputs wait if no majority has room\n";
  }
  if (const std::string why = text_in(summary, "not_serving"); !why.empty()) {
    text += "not serving: " + why + "; see server.log\n";
  }
  const Json& verdict = object_in(summary, "verdict");
  if (control::flag_in(verdict, "serving")) return text;  // the first line contains the notes
  for (const Json& note : list_in(verdict, "notes")) {
    if (note.is_string()) text += note.get<std::string>() + "\n";
  }
  return text;
}

std::string verified_text(const Json& summary) {
  const Json& v = object_in(summary, "verified");
  if (v.empty()) return "";
  std::string text =
      "verified: " +
      (number(v, "index") == 0
           ? std::string("nothing yet")
           : fmt::format("log index {}, {} ms ago, {} entries since; last verdict: {}",
                         cell(v, "index"), cell(v, "age_ms"), cell(v, "entries_since"),
                         cell(v, "verdict"))) +
      "\n";
  if (const std::string alarm = text_in(v, "alarm"); !alarm.empty()) {
    text += "alarm: " + alarm + "\n";
  }
  return text;
}

// The last election and the failure detection, as far as they are known.
std::string election_text(const Json& summary) {
  const Json &e = object_in(summary, "last_election"), &d = object_in(summary, "detection");
  std::string text;
  if (!e.empty()) {
    text = fmt::format("last election: view {} ({}), {} ms ago, took {} us\n", cell(e, "view"),
                       cell(e, "cause"), cell(e, "age_ms"), cell(e, "took_us"));
  }
  if (!d.empty()) {
    text += fmt::format("heartbeat every {} us, suspected after {} missed in a row\n",
                        cell(d, "period_us"), cell(d, "misses_needed"));
  }
  return text;
}

// The leader's connections, replicas that could continue them, and the last leader change.
std::string connections_text(const Json& summary) {
  const Json* leader = nullptr;
  std::vector<std::string> followers;
  for (const Json& row : summary["replicas"]) {
    if (!row.contains("keeps_connections")) continue;
    if (text_in(row, "role") == "leader") {
      leader = &row;
    } else {
      followers.push_back(
          fmt::format("{} by replica {}", cell(row, "connections"), cell(row, "replica")));
    }
  }
  if (leader == nullptr) return "";
  std::string text = fmt::format("connections: {}, ", cell(*leader, "connections"));
  if (leader->at("keeps_connections") == true) {
    text += "followed " + (followers.empty() ? "by none" : joined(followers));
  } else {
    text += "reset when the leader changes";
  }
  if (number(*leader, "last_adopted") + number(*leader, "last_reset") > 0) {
    text += fmt::format("; at the last change {} adopted, {} reset", cell(*leader, "last_adopted"),
                        cell(*leader, "last_reset"));
  }
  return text + "\n";
}

}  // namespace

// The last upgrade of the server, as the leader reports it.
std::string upgrade_text(const Json& summary) {
  for (const Json& row : list_in(summary, "replicas")) {
    const Json upgrade = object_in(row, "upgrade");
    const std::string state = text_in(upgrade, "state", "none");
    if (text_in(row, "role") != "leader" || state == "none") continue;
    const bool decided = state == "kept" || state == "rolled back";
    const std::string why = text_in(upgrade, "why");
    return fmt::format("upgrade at entry {}: {}{}{}\n", cell(upgrade, "entry"), state,
                       decided ? "" : ", no client is let in", why.empty() ? "" : ": " + why);
  }
  return "";
}

std::string table_of(const Json& summary) {
  static constexpr Column kColumns[] = {{"REPLICA", "replica", false},
                                        {"ROLE", "role", false},
                                        {"VIEW", "view", true},
                                        {"LAST", "last", true},
                                        {"COMMIT", "commit", true},
                                        {"DURABLE", "durable", true},
                                        {"APPLIED", "applied", true},
                                        {"LAG", "lag_entries", true},
                                        {"CLIENTS", "connections", true},
                                        {"SERVER", "server_pid", true},
                                        {"PEERS", "peers_connected", true},
                                        {"DEVICE", "device", false},
                                        {"FENCE", "fence", false},
                                        {"PAGES", "log_pages", true},
                                        {"CPUS", "cpus", false},
                                        {"NUMA", "numa_node", false},
                                        {"STATE", "state", false}};
  std::string text = fmt::format(
      "{}: {}\n{}, leader {}, view {}, commit {}", text_in(summary, "group", "?"),
      text_in(object_in(summary, "verdict"), "text", "?"), text_in(summary, "health", "?"),
      cell(summary, "leader"), cell(summary, "view"), cell(summary, "commit"));
  if (summary.contains("fabric")) {
    text += fmt::format(", {}, {}", cell(summary, "fabric"), cell(summary, "durability"));
  }
  text += "\n" + table(kColumns, summary["replicas"]) + reboot_text(summary);
  text += serving_text(summary) + verified_text(summary) + election_text(summary);
  text += connections_text(summary) + under_way_text(summary);
  return text + returns_text(summary) + checkpoints_text(summary) + recovery_text(summary) +
         upgrade_text(summary) + sizes_text(summary) + analysis_text(summary) +
         soft_barriers_text(summary) + unhooked_text(summary);
}

Json members_json(const Json& summary) {
  return {{"version", control::kVersion},
          {"group", summary["group"]},
          {"members", list_in(summary, "members")}};
}

std::string members_of(const Json& summary) {
  static constexpr Column kColumns[] = {{"REPLICA", "replica", false},
                                        {"MEMBER", "member", false},
                                        {"LAST", "last", true},
                                        {"APPLIED", "applied", true},
                                        {"UP", "connected", false},
                                        {"STREAMED TO", "streaming", false},
                                        {"NEEDS CHECKPOINT", "needs_checkpoint", false}};
  const Json members = list_in(summary, "members");
  if (members.empty()) return text_in(summary, "group", "?") + ": no node reports the members\n";
  return text_in(summary, "group", "?") + ":\n" + table(kColumns, members);
}

}  // namespace crane::launcher
