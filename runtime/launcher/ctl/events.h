// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl events: the events that the nodes of this machine have recorded
// (proxy/host/event_log.h), also of nodes that no longer run.
//
// Threads: plain functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::launcher {

// A list of all events in DIR/GROUP/r*/events.jsonl and its predecessor, the oldest first.  Skips
// lines that are no events (a node was killed while it wrote one).  `denied`: this user may not
// read some of the events.
nlohmann::json read_events(const std::string& home, bool& denied);
// A table with times in this machine's time zone.
std::string events_table(const nlohmann::json& events);

}  // namespace crane::launcher
