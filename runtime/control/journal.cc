// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/journal.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace crane::control {

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

void add_events(std::string_view lines, std::vector<Json>& events) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    Json event = Json::parse(lines.substr(0, end), nullptr, false);
    if (is_event(event)) events.push_back(std::move(event));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

Json by_time(std::vector<Json> events) {
  const auto at = [](const Json& event) { return event["unix_ms"].get<std::int64_t>(); };
  std::stable_sort(events.begin(), events.end(),
                   [&at](const Json& a, const Json& b) { return at(a) < at(b); });
  return events;
}

Json last_of(const Json& events, std::size_t count) {
  if (count == 0 || events.size() <= count) return events;
  return Json(std::vector<Json>(events.end() - static_cast<std::ptrdiff_t>(count), events.end()));
}

}  // namespace crane::control
