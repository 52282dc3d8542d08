// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the nodes of a group answer HTTP (metrics, health, a page).  Users write a port of the
// loopback address, "9100", or an address with a port, "10.0.0.1:9100".
//
// Threads: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dmt/layout.h"
#include "runtime/setup/group_file.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/publish.h"

namespace crane::setup {

// nullopt: `text` is neither.
std::optional<VirtualAddress> parse_http(const std::string& text);
// "10.0.0.1" of "10.0.0.1:80", "::1" of "[::1]:80".
std::string host_of(const std::string& address);
// Checks the user's text.  The `replicas` of one machine have consecutive ports.  Errors: kUsage.
Outcome check_http(const std::string& text, int replicas);
// Checks that all replicas can listen now.  Errors: kPortTaken; nodes try again while the group
// serves.
Outcome check_http_ports(const std::string& text, int replicas);
// The TCP ports that the server's command line names: "--port 80", "-p 80", "-p80", "port=80",
// "0.0.0.0:80".  Other numbers are not taken for ports.
struct NamedPort {
  std::uint16_t port = 0;
  std::string word;  // the word or two words that name it
};
std::vector<NamedPort> named_ports(const std::vector<std::string>& command);
// Checks that clients of the server use none of the HTTP ports: no published one, or, if all the
// server's ports are published unchanged, none that its command line names.  REQUIRES: check_http()
// has succeeded.  Errors: kUsage.
Outcome check_http_apart(const std::string& text, int replicas, const Ports& publish,
                         const std::vector<std::string>& command);
// The address of replica `number` on one machine: `number` is added to the port in `text`.
std::string http_of_replica(const std::string& text, int number);

// Where this replica answers, according to the group's file; "": nowhere.
std::string http_listen_of(const GroupFile& file, const HostReplica& replica);
// For each replica, where a browser on another host reaches its page; "": nowhere.
std::vector<std::string> http_pages_of(const GroupFile& file);

}  // namespace crane::setup
