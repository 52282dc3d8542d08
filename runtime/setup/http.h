// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the nodes of a group answer HTTP (metrics, health, a page), as users say it: a port of the
// loopback address, "9100", or an address with a port, "10.0.0.1:9100".
//
// Threads: pure functions.

#include <optional>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/messages.h"

namespace crane::setup {

// nullopt: it is neither.
std::optional<VirtualAddress> parse_http(const std::string& text);
// What is wrong with the user's text; `replicas` of one machine have ports one after the other.
Outcome check_http(const std::string& text, int replicas);
// Whether all of them can answer there now; kPortTaken: nodes try again while the group serves.
Outcome check_http_ports(const std::string& text, int replicas);
// Of replica `number` on one machine: its port is by `number` above the first one's.
std::string http_of_replica(const std::string& text, int number);

// Of a group's file: where this replica answers, "": nowhere; and, by replica, where a browser on
// another host reaches that.
std::string http_listen_of(const GroupFile& file, const HostReplica& replica);
std::vector<std::string> http_pages_of(const GroupFile& file);

}  // namespace crane::setup
