// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/group_checks.h"

#include <fmt/format.h>

#include "runtime/control/schema.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using control::list_in, control::object_in, control::text_in;

constexpr const char* kStatusTells = "see crane-ctl status, and node.log of the replicas";

// The nodes of this machine that answer.
std::vector<const Json*> answering(const Json& summary) {
  std::vector<const Json*> rows;
  for (const Json& row : list_in(summary, "replicas")) {
    if (text_in(row, "state") == "ok") rows.push_back(&row);
  }
  return rows;
}

std::string who(const Json& row) { return "replica " + std::to_string(control::replica_in(row)); }

std::int64_t number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

Finding check_service(const Json& summary, bool runs) {
  const std::string health = text_in(summary, "health");
  if (!runs)
    return {"group", Verdict::kOk, "no node of this machine answers: it does not run", "", ""};
  Finding f{"group", Verdict::kOk, health, "", ""};
  if (health == "well") return f;
  f.verdict = Verdict::kLimited;
  const std::string why = text_in(summary, "not_serving");
  if (!why.empty()) f.seen += ": " + why;
  f.costs = health == "degraded" ? "fewer replicas may be lost" : "clients are not served";
  f.mend = kStatusTells;
  return f;
}

void add_durability(const Json& summary, std::vector<Finding>& findings) {
  const std::string durability = text_in(summary, "durability");
  if (durability.empty()) return;
  findings.push_back({"durability", Verdict::kOk,
                      durability == "disk"
                          ? "disk: everything that was answered outlives all replicas"
                          : "memory: everything that was answered outlives a minority of replicas",
                      "", ""});
}

// How to get the checkpoints that a node does not take.
std::string how_to_checkpoint(const std::string& none_because) {
  return none_because.find("without a container") != std::string::npos
             ? "run the server in a container (leave out --no-container), and install CRIU"
             : "run Crane's get_criu.sh (/usr/lib/crane), or install a package of CRIU, and start "
               "the nodes again";
}

// The first node that reports a problem counts for all.
Finding check_recovery(const std::vector<const Json*>& rows) {
  Finding f{"recovery", Verdict::kOk, "a lost replica recovers from a checkpoint", "", ""};
  const std::string not_yet = text_in(object_in(*rows.front(), "recovery"), "why");
  if (!not_yet.empty()) f.seen = "a lost replica runs all inputs again: " + not_yet;
  for (const Json* row : rows) {
    const std::string refused = text_in(object_in(*row, "recovery"), "refused");
    const std::string none = text_in(object_in(*row, "checkpoint"), "none_because");
    if (refused.empty() && none.empty()) continue;
    f.verdict = Verdict::kLimited;
    f.costs = "a lost replica runs all inputs again, as long as the log has them";
    // Without CRIU each checkpoint fails, which says nothing about the server.
    f.seen = none.empty() ? "CRIU refuses this server: " + refused : "no checkpoints: " + none;
    f.mend = none.empty() ? "--restart-checkpoints, if the server may be ended and started again"
                          : how_to_checkpoint(none);
    return f;
  }
  for (const Json* row : rows) {
    const Json& checkpoint = object_in(*row, "checkpoint");
    const std::string why = text_in(checkpoint, "why_not");
    if (why.empty() || number(checkpoint, "taken") != 0) continue;
    f.verdict = Verdict::kLimited;
    f.seen = who(*row) + " gave up a checkpoint: " + why;
    f.costs = "until one is taken, a lost replica runs all inputs again";
    f.mend = "crane-ctl checkpoint now takes one";
    return f;
  }
  return f;
}

Finding check_unhooked(const std::vector<const Json*>& rows) {
  Finding f{"unhooked calls", Verdict::kOk, "none", "", ""};
  std::int64_t most = 0;
  for (const Json* row : rows) {
    const auto calls = row->find("unhooked_calls");
    if (calls != row->end() && calls->is_null()) {
      return {"unhooked calls", Verdict::kLimited, "unknown: the kernel cannot tell",
              "a server whose calls bypass libc may diverge", "use Linux 5.11 or later"};
    }
    if (number(*row, "unhooked_calls") <= most) continue;
    most = number(*row, "unhooked_calls");
    f.seen = fmt::format("{} of {}", most, who(*row));
    f.measures["calls"] = most;
    for (const Json& call : list_in(*row, "unhooked")) {
      if (text_in(call, "outcome") != "passed") continue;
      f.verdict = Verdict::kLimited;
      f.seen += fmt::format(", {} at {}+{} passed", text_in(call, "call"), text_in(call, "object"),
                            text_in(call, "offset"));
      f.costs = "the kernel's answers to it may differ between replicas";
      f.mend = "see Unhooked calls in the manual; --strict ends the group at such a call";
      break;
    }
  }
  return f;
}

// Requests of the server that Crane does not support.
Finding check_unsupported(const std::vector<const Json*>& rows) {
  Finding f{"asked in vain", Verdict::kOk, "nothing", "", ""};
  constexpr std::pair<const char*, const char*> kKinds[] = {{"datagrams", "datagrams to others"},
                                                            {"udp_ports", "UDP ports for clients"},
                                                            {"sandboxes", "seccomp sandboxes"}};
  for (const Json* row : rows) {
    std::string seen;
    for (const auto& [key, what] : kKinds) {
      const std::int64_t count = number(object_in(*row, "unsupported"), key);
      if (count != 0) seen += fmt::format("{}{} {}", seen.empty() ? "" : ", ", count, what);
    }
    if (seen.empty()) continue;
    return {"asked in vain", Verdict::kLimited, who(*row) + ": " + seen,
            "the server does without them", kStatusTells};
  }
  return f;
}

// Only fabric verbs has a choice of pages.
void add_pages(const std::vector<const Json*>& rows, std::vector<Finding>& findings) {
  for (const Json* row : rows) {
    const std::string pages = text_in(*row, "log_pages");
    if (pages.empty()) continue;
    Finding f{"log pages", Verdict::kOk, who(*row) + ": " + pages, "", ""};
    if (pages.find("KiB") != std::string::npos) {
      f.verdict = Verdict::kLimited;
      f.costs = "the RDMA device needs more translations for the log";
      f.mend = "Linux 6.1 and free memory; node.log says what was missing";
    }
    findings.push_back(f);
    if (f.verdict != Verdict::kOk) return;
  }
}

}  // namespace

std::vector<Finding> check_group(const Json& summary) {
  const auto rows = answering(summary);
  std::vector<Finding> findings{check_service(summary, !rows.empty())};
  if (const std::string what = text_in(summary, "unsupervised"); !what.empty()) {
    findings.push_back({"crane-run", Verdict::kLimited, "no crane-run supervises the group",
                        "lost replicas stay away", what});
  }
  if (rows.empty()) return findings;
  add_durability(summary, findings);
  findings.push_back(check_recovery(rows));
  findings.push_back(check_unhooked(rows));
  findings.push_back(check_unsupported(rows));
  add_pages(rows, findings);
  return findings;
}

}  // namespace crane::launcher
