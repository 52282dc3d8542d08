// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lines of a replica's events.jsonl (proxy/host/event_log.h), as crane-ctl events and the page
// read them.
//
// Threads: pure functions.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace crane::control {

// Whether the object has the fields of an event, and no others.
bool is_event(const nlohmann::json& line);
// Appends the events of these lines.  Skips lines that are no events: one that a killed node did
// not complete, or one of which the beginning is missing.
void add_events(std::string_view lines, std::vector<nlohmann::json>& events);
// A list of them, the oldest first.
nlohmann::json by_time(std::vector<nlohmann::json> events);
// The last `count` events; 0: all.
nlohmann::json last_of(const nlohmann::json& events, std::size_t count);

}  // namespace crane::control
