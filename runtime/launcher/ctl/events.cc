// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/kept.h"
#include "dmt/base/read_text.h"
#include "runtime/control/journal.h"
#include "runtime/launcher/text_table.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

void read_file(const std::string& path, std::vector<Json>& all, bool& denied) {
  errno = 0;
  std::ifstream in(path);
  if (!in) denied = denied || errno == EACCES;
  control::add_events(rest_of(in), all);
}

std::string time_text(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}{:%z}", local, unix_ms % 1000, local);
}

}  // namespace

Json read_events(const std::string& home, bool& denied) {
  std::vector<Json> all;
  for (const auto& [replica, directory] : checkpoint::replica_directories(home, denied)) {
    read_file(directory + "/events.jsonl.1", all, denied);
    read_file(directory + "/events.jsonl", all, denied);
  }
  return control::by_time(std::move(all));
}

void add_events(Json& events, const Json& more) {
  std::vector<Json> all(events.begin(), events.end());
  std::copy_if(more.begin(), more.end(), std::back_inserter(all), control::is_event);
  events = control::by_time(std::move(all));
}

std::string events_table(const Json& events) {
  constexpr Column kColumns[] = {{"TIME", "time", false},
                                 {"REPLICA", "replica", true},
                                 {"EVENT", "event", false},
                                 {"WHAT", "text", false}};
  Json rows = events;
  for (Json& row : rows) row["time"] = time_text(row["unix_ms"].get<std::int64_t>());
  return table(kColumns, rows);
}

}  // namespace crane::launcher
