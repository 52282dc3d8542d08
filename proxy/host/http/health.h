// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a load balancer or an orchestrator asks of a node: whether this replica leads, follows near
// enough, is ready, lives.  Paths and meanings are those of Patroni's and etcd's.
//
// Pure.  Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/host/status.h"

namespace crane::node {

// 200 or 503, and why, in plain words.
struct HealthAnswer {
  int status = 200;
  std::string reason;  // empty: yes
};

// The group serves, as far as this replica knows: there are a leader and a quorum, and its own
// server goes on.
HealthAnswer health(const NodeStatus& status);
// It leads, and takes clients.
HealthAnswer leads(const NodeStatus& status);
// It follows a leader, and its server is at most this far behind.
HealthAnswer follows(const NodeStatus& status, std::optional<std::int64_t> lag_ns);
// It leads, or follows near enough to take over at once.
HealthAnswer ready(const NodeStatus& status, std::optional<std::int64_t> lag_ns);

// "100ms", "2s", "500us" as nanoseconds; nullopt: it is no such time.
std::optional<std::int64_t> parse_lag(const std::string& text);

}  // namespace crane::node
