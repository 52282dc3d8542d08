// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/plain_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "dmt/base/join.h"
#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/known_group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
using control::list_in;
using control::number_in;
using control::text_in;

// A server or node that uses this much of a processor has none left on its core.
constexpr double kWholeCpuPercent = 90;
// Below the default limit of 250 ms, at which the leader stops reading clients (LAG-1).
constexpr std::uint64_t kLateMs = 200;

double percent_in(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? found->get<double>() : 0;
}

std::string slowness_of(const std::vector<const Json*>& rows) {
  std::vector<std::uint64_t> lags;  // of followers
  double most = 0;
  for (const Json* row : rows) {
    const double server = percent_in(*row, "server_cpu_percent");
    const double node = percent_in(*row, "node_cpu_percent");
    most = std::max({most, server, node});
    if (text_in(*row, "role") != "leader") {
      lags.push_back(number_in(*row, "lag_ms"));
      continue;
    }
    if (server >= kWholeCpuPercent) {
      return fmt::format("slow: the leader's server computes on its one core (SERVER CPU {} %)",
                         server);
    }
    if (node >= kWholeCpuPercent) {
      return fmt::format("slow: the leader's node uses a whole processor (NODE CPU {} %)", node);
    }
  }
  std::sort(lags.begin(), lags.end());
  // The leader and half of the followers are a majority.
  const std::uint64_t late = lags.empty() ? 0 : lags[(lags.size() - 1) / 2];
  if (late >= kLateMs) {
    return fmt::format("slow: clients wait for the followers' servers, which are {} ms late", late);
  }
  return fmt::format(
      "not slow: no server or node uses more than {} % of a processor, and a majority is at most "
      "{} ms late; if clients wait, crane-ctl doctor measures the disk",
      most, late);
}

}  // namespace

std::string reboot_text(const Json& summary) {
  std::size_t here = 0, voters = 0;
  int first = -1;
  std::map<int, bool> is_here;
  for (const Json& row : list_in(summary, "replicas")) {
    is_here[control::replica_in(row)] =
        text_in(row, "state") == "ok" && !control::flag_in(row, "over_link");
  }
  for (const Json& member : list_in(summary, "members")) {
    if (text_in(member, "member") != "voter") continue;
    ++voters;
    if (!is_here[control::replica_in(member)]) continue;
    if (here++ == 0) first = control::replica_in(member);
  }
  if (voters == 0) return "";
  const std::string group = text_in(summary, "group");
  const auto answer = [](bool yes, const std::string& why) {
    return fmt::format("reboot of this host: {}: {}\n", yes ? "yes" : "no", why);
  };
  if (here == 0) return answer(true, "no replica of this group runs on it");
  const std::string runs = fmt::format("{} of {} replicas run on it", here, voters);
  if (here > voters / 2) return answer(false, runs + ", so the group stops with it");
  const auto may_lose = summary.find("may_lose");
  if (may_lose == summary.end() || !may_lose->is_number_integer()) {
    return answer(false, runs + ", and no replica leads");
  }
  const auto losses = may_lose->get<std::size_t>();
  if (losses < here)
    return answer(false, fmt::format("{}, and the group may lose {}", runs, losses));
  return answer(
      true, fmt::format("{}, and the group may lose {}; first crane-ctl replica drain {} {}", runs,
                        losses, first, group));
}

std::string slowness_text(const Json& rates) {
  std::map<std::string, std::vector<const Json*>> groups;
  for (const Json& row : rates) groups[text_in(row, "group")].push_back(&row);
  std::string text;
  for (const auto& [group, rows] : groups) text += group + ": " + slowness_of(rows) + "\n";
  return text;
}

std::string lasting_of(const std::string& home, const std::string& durability) {
  std::vector<std::string> lasting;
  const auto known = parse_known_group(text_of_file(home + "/" + kKnownGroupName));
  const bool on_disk = durability == "disk" || (known.ok() && known.value().durability == "disk");
  if (on_disk) lasting.push_back("log");
  if (known.ok()) {
    lasting.insert(lasting.end(), known.value().data.begin(), known.value().data.end());
  }
  return lasting.empty() ? "nothing" : joined(lasting);
}

}  // namespace crane::launcher
