// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's metrics in Prometheus' text format.  Names follow its conventions: prefix crane_, base
// units (seconds, bytes), suffix _total for counters.
//
// Pure.  Threads: plain function.

#include <string>
#include <vector>

#include "proxy/host/http/surroundings.h"
#include "proxy/host/status.h"

namespace crane::node {

struct Surroundings {
  ProcessFacts process;
  std::vector<FileSystem> file_systems;
  NewestCheckpoint checkpoint;
};

std::string metrics_text(const NodeStatus& status, const Surroundings& around);

}  // namespace crane::node
