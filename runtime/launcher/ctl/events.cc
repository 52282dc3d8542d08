// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/kept.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/text_table.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

bool is_event(const Json& line) {
  if (!line.is_object() || line.size() != 4) return false;
  for (const char* number : {"unix_ms", "replica"}) {
    if (const auto at = line.find(number); at == line.end() || !at->is_number_integer())
      return false;
  }
  for (const char* text : {"event", "text"}) {
    if (const auto at = line.find(text); at == line.end() || !at->is_string()) return false;
  }
  return true;
}

void sort(std::vector<Json>& events) {
  const auto at = [](const Json& event) { return event["unix_ms"].get<std::int64_t>(); };
  std::stable_sort(events.begin(), events.end(),
                   [&at](const Json& a, const Json& b) { return at(a) < at(b); });
}

void read_file(const std::string& path, std::vector<Json>& all, bool& denied) {
  errno = 0;
  std::ifstream in(path);
  if (!in) denied = denied || errno == EACCES;
  for (std::string line; std::getline(in, line);) {
    Json event = Json::parse(line, nullptr, false);
    if (is_event(event)) all.push_back(std::move(event));
  }
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
  sort(all);
  return all;
}

void add_events(Json& events, const Json& more) {
  std::vector<Json> all(events.begin(), events.end());
  std::copy_if(more.begin(), more.end(), std::back_inserter(all), is_event);
  sort(all);
  events = std::move(all);
}

Json last_of(const Json& events, std::size_t count) {
  if (count == 0 || events.size() <= count) return events;
  return Json(std::vector<Json>(events.end() - static_cast<std::ptrdiff_t>(count), events.end()));
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
