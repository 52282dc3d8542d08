// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's metrics in Prometheus' text format.  Names follow its conventions: prefix crane_, base
// units (seconds, bytes), suffix _total for counters.
//
// Pure.  Threads: plain function.

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/host/http/connections.h"
#include "proxy/host/http/surroundings.h"
#include "proxy/host/status.h"

namespace crane::node {

struct HttpFacts {
  HttpCounts connections;
  std::uint64_t failed_logins = 0;
  std::int64_t certificate_expires_unix_s = 0;  // 0: without TLS
};

struct Surroundings {
  ProcessFacts process;
  std::vector<FileSystem> file_systems;
  NewestCheckpoint checkpoint;
  HttpFacts http = {};
};

std::string metrics_text(const NodeStatus& status, const Surroundings& around);

}  // namespace crane::node
