// SPDX-License-Identifier: Apache-2.0
#pragma once
// Answers of a node to a load balancer or an orchestrator: whether this replica leads, follows
// closely enough, is ready, lives.  Paths and meanings are those of Patroni and etcd.
//
// Pure.  Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/host/status.h"

namespace crane::node {

// 200 or 503, with the reason in plain words.
struct HealthAnswer {
  int status = 200;
  std::string reason;  // empty: yes
};

// Whether the group serves, as known to this replica: there are a leader and a quorum, and its own
// server continues.
HealthAnswer health(const NodeStatus& status);
// Whether it leads and takes clients.
HealthAnswer leads(const NodeStatus& status);
// Whether it follows a leader, and its server is at most `lag_ns` behind.
HealthAnswer follows(const NodeStatus& status, std::optional<std::int64_t> lag_ns);
// Whether it leads, or follows closely enough to take over at once.
HealthAnswer ready(const NodeStatus& status, std::optional<std::int64_t> lag_ns);

// "100ms", "2s", "500us" as nanoseconds; nullopt: not such a time.
std::optional<std::int64_t> parse_lag(const std::string& text);

}  // namespace crane::node
