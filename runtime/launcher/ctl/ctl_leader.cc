// SPDX-License-Identifier: Apache-2.0
// crane-ctl leader: transfers the lead to another replica and checks that it leads.
#include <poll.h>

#include "runtime/launcher/child.h"
#include "runtime/launcher/ctl/ctl.h"

namespace crane::launcher {

using setup::print_message;
using Json = nlohmann::json;
using control::list_in, control::number_in, control::replica_in, control::text_in;

namespace {

constexpr std::int64_t kPatienceMs = 10'000;  // elections take milliseconds, more under load
// Whether the summary names the replica as leader and its own status, if it is here, agrees.

bool leads(const Json& summary, int replica) {
  if (!summary["leader"].is_number() || summary["leader"] != replica) return false;
  for (const Json& row : list_in(summary, "replicas")) {
    if (replica_in(row) == replica && row.contains("role")) return text_in(row, "role") == "leader";
  }
  return true;  // it is on another host
}

// Whether the lead has changed as requested, in a later view than before.
bool is_transferred(const Json& before, const Json& now, int to) {
  if (!now["leader"].is_number()) return false;
  const int leader = now["leader"].get<int>();
  const bool later = number_in(now, "view") > number_in(before, "view");
  const bool wanted = to >= 0 ? leader == to : now["leader"] != before["leader"];
  return wanted && leads(now, leader) && (later || before["leader"] == leader);
}

// Waits for the transfer and returns the last summary.  If the chosen replica was too slow, another
// one leads or the old leader continued: then sends the request to the present leader again.
Json wait_for_transfer(const Request& request, const std::string& group, const Json& before,
                       const Json& what) {
  const auto deadline = now_ms() + kPatienceMs;
  auto ask_at = now_ms() + kAskAgainMs;
  Json now = summary_of(request, group);
  while (!is_transferred(before, now, request.to) && now_ms() < deadline) {
    poll(nullptr, 0, kLookEveryMs);
    now = summary_of(request, group);
    const bool another = now["leader"].is_number() && now["leader"] != request.to;
    if (request.to < 0 || !another || now_ms() < ask_at) continue;
    request_of_leader(request, group, now, what);  // repeated if the leader is busy
    ask_at = now_ms() + kAskAgainMs;
  }
  return now;
}

std::string not_transferred(const Request& request, const std::string& group, const Json& now) {
  const std::string wanted =
      request.to >= 0 ? "replica " + std::to_string(request.to) : "another replica";
  const std::string but =
      now["leader"].is_number()
          ? "replica " + now["leader"].dump() + " leads"
          : "no replica leads" +
                (now.contains("no_quorum") ? ": " + text_in(now, "no_quorum") : std::string());
  return "not transferred: " + group + ": " + wanted + " did not take the lead within " +
         std::to_string(kPatienceMs / 1000) + " s: " + but + "; see crane-ctl status " + group;
}

}  // namespace

namespace {

int transfer_lead(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Json before = summary_of(request, group);
  Json what{{"do", "transfer"}};
  if (request.to >= 0) what["to"] = request.to;
  const RequestResult result = request_of_leader(request, group, before, what);
  if (result.status != 0) {
    print_message(result.message);
    return result.status;
  }
  print(result.message + "\n");
  if (request.no_wait) return 0;
  const Json now = wait_for_transfer(request, group, before, what);
  if (is_transferred(before, now, request.to)) {
    print("replica " + now["leader"].dump() + " leads\n");
    return 0;
  }
  print_message(not_transferred(request, group, now));
  return kNotTransferred;
}

}  // namespace

Command leader_commands(Request& r) {
  return {"leader",
          "the leader of the group",
          {},
          {{"transfer",
            "transfers the lead to another replica",
            {group_word(r),
             {"--to", &r.to, "the new leader (default: the replica that is furthest ahead)"},
             {"--no-wait", Word::Flag{&r.no_wait}, "do not wait until it leads"}},
            {},
            [&r] { return transfer_lead(r); }}}};
}

}  // namespace crane::launcher
