// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl events: the events that the nodes have recorded (proxy/host/event_log.h): on this
// machine also of nodes that no longer run, of other hosts those of nodes that answer.
//
// Threads: plain functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::launcher {

// A list of all events in DIR/GROUP/r*/events.jsonl and its predecessor, the oldest first.  Skips
// lines that are no events (a node was killed while it wrote one).  `denied`: this user may not
// read some of the events.
nlohmann::json read_events(const std::string& home, bool& denied);
// Adds those of the list `more` that are events, in their order.
void add_events(nlohmann::json& events, const nlohmann::json& more);
// A table with times in this machine's time zone.
std::string events_table(const nlohmann::json& events);

}  // namespace crane::launcher
