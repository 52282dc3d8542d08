// SPDX-License-Identifier: Apache-2.0
#pragma once
// On which processors a replica runs, and how (DESIGN D10).
//
// The server's threads share one core, where a hand-off of the turn costs a tenth of one across
// cores.  The node shares it too when a request is cheap (redis: one wake-up serves a batch and the
// caches are warm), and roams when the server works long between turns (apache2), so that reading
// and sending clients overlaps with it; the profile says which.  The node keeps the server's
// priority: one that outranks it preempts it at every request and so loses its batches.  Both are
// SCHED_BATCH (the server by runtime/preload/core/init.cc): who is woken does not preempt who wakes
// it, so that more is done at once (ARCHITECTURE.md section 9 has the figures).
//
// Threads: the node's only one.

#include <sched.h>

#include <string>

#include "proxy/node/config.h"
#include "runtime/setup/messages.h"

namespace crane::node {

// nice(2).  An analysis replica runs so, and has its server behind all others (server_monitor.cc).
inline constexpr int kLowestNice = 19;

// Looks whether this machine has the processors and the NUMA node that the group's file `path`
// gives the replica; `config.cpus` become those of the node where the file names none.
Outcome check_placement(const std::string& path, Config& config);

// Makes the calling thread SCHED_BATCH; binds it, and all that it starts later, to `config.cpus`
// and to memory of `config.numa_node`; sets `config.processors`; and binds itself to `config.cpu`,
// unless that is negative or the node roams.
void place_node(Config& config);

// The processors that the calling thread may use, as "0-3,8".
std::string own_processors();

// While it lives, children of the calling thread are born on `config.cpu`.
class ServerPlacement {
 public:
  explicit ServerPlacement(const Config& config);
  ~ServerPlacement();
  ServerPlacement(const ServerPlacement&) = delete;
  ServerPlacement& operator=(const ServerPlacement&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

}  // namespace crane::node
