// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/top.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/operations.h"
#include "runtime/launcher/text_table.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

std::uint64_t number_of(const Json& status, const char* key) {
  const auto found = status.find(key);
  return found == status.end() || !found->is_number_unsigned() ? 0 : found->get<std::uint64_t>();
}

pid_t pid_of(const Json& status, const char* key) {
  return static_cast<pid_t>(number_of(status, key));
}

// Counters of a replica at two times, and the seconds between them.
struct Span {
  const Json &before, &now;
  double seconds;

  std::uint64_t rate(const char* key) const {
    const std::uint64_t from = number_of(before, key), to = number_of(now, key);
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(to - std::min(from, to)) / seconds));
  }
};

double percent(const Look& before, const Look& now, pid_t pid, double seconds) {
  const double used =
      tree_of(now.processes, pid).cpu_seconds - tree_of(before.processes, pid).cpu_seconds;
  return std::max(0.0, std::round(used / seconds * 1000) / 10);
}

// `here`: the replica's processes are of this machine.
Json row_of(const std::string& group, const Span& span, const Look& before, const Look& now,
            bool here) {
  const Json& s = span.now;
  const pid_t node = pid_of(s, "pid"), server = pid_of(s, "server_pid");
  Json row{{"group", group},
           {"replica", s.value("replica", Json())},
           {"role", s.value("role", Json())},
           {"inputs_per_s", span.rate("inputs")},
           {"received_bytes_per_s", span.rate("bytes_in")},
           {"sent_bytes_per_s", span.rate("bytes_out")},
           {"turns_per_s", span.rate("clock")},
           {"connections", number_of(s, "connections")},
           {"lag_ms", number_of(s, "lag_ms")},
           {"node_cpu_percent", nullptr},
           {"server_cpu_percent", nullptr},
           {"server_resident_bytes", nullptr},
           {"operations", operations_in(s)}};
  if (here) row["node_cpu_percent"] = percent(before, now, node, span.seconds);
  if (here && server > 0 && pid_of(span.before, "server_pid") == server) {
    row["server_cpu_percent"] = percent(before, now, server, span.seconds);
    row["server_resident_bytes"] = tree_of(now.processes, server).resident_bytes;
  }
  return row;
}

}  // namespace

Look look_at(const Request& request, const std::vector<std::string>& groups) {
  Look look;
  look.at_ns = monotonic_ns();
  for (const auto& group : groups) look.groups[group] = ask_all(request, group);
  look.processes = read_processes();
  return look;
}

Json rates_between(const Look& before, const Look& now) {
  Json rows = Json::array();
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  for (const auto& [group, answers] : now.groups) {
    const auto then = before.groups.find(group);
    if (then == before.groups.end()) continue;
    for (const auto& [replica, answer] : answers) {
      const auto was = then->second.find(replica);
      if (was == then->second.end() || answer.reply != Reply::kAnswer ||
          was->second.reply != Reply::kAnswer ||
          pid_of(answer.status, "pid") != pid_of(was->second.status, "pid")) {
        continue;
      }
      rows.push_back(
          row_of(group, {was->second.status, answer.status, seconds}, before, now, answer.here));
    }
  }
  return rows;
}

std::string top_table(const Json& rates) {
  constexpr Column kColumns[] = {{"GROUP", "group", false},
                                 {"REPLICA", "replica", true},
                                 {"ROLE", "role", false},
                                 {"INPUTS/S", "inputs_per_s", true},
                                 {"IN kB/S", "in_kb", true},
                                 {"OUT kB/S", "out_kb", true},
                                 {"TURNS/S", "turns_per_s", true},
                                 {"CLIENTS", "connections", true},
                                 {"LAG ms", "lag_ms", true},
                                 {"NODE CPU%", "node_cpu_percent", true},
                                 {"SERVER CPU%", "server_cpu_percent", true},
                                 {"SERVER MB", "server_mb", true}};
  Json rows = rates;
  for (Json& row : rows) {
    const auto scaled = [&row](const char* to, const char* from, std::uint64_t by) {
      row[to] = row[from].is_null() ? Json() : Json((row[from].get<std::uint64_t>() + by / 2) / by);
    };
    scaled("in_kb", "received_bytes_per_s", 1'000);
    scaled("out_kb", "sent_bytes_per_s", 1'000);
    scaled("server_mb", "server_resident_bytes", 1'000'000);
  }
  std::string text = table(kColumns, rows);
  for (const Json& row : rates) {
    text += operations_text(control::list_in(row, "operations"), cell(row, "group") + ", ");
  }
  return text;
}

}  // namespace crane::launcher
