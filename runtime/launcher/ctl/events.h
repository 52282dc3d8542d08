// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-ctl events: what happened to the replicas of a group on this machine, as their nodes have
// written it down (proxy/host/event_log.h), whether they run or not.
//
// Threads: plain functions.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::launcher {

// All events in DIR/GROUP/r*/events.jsonl and its predecessor, the oldest first; a list.  A line
// that is no event (a node was killed while it wrote) is left out.  `denied`: there are some that
// this user may not read.
nlohmann::json read_events(const std::string& home, bool& denied);
// The last `count` of them; 0: all.
nlohmann::json last_of(const nlohmann::json& events, std::size_t count);
// For people, in this machine's time.
std::string events_table(const nlohmann::json& events);

}  // namespace crane::launcher
