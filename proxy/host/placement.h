// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processors on which a replica runs, and its scheduling policy (DESIGN D10).
//
// The server's threads share one core, because there a hand-off of the turn costs a tenth of a
// hand-off across cores.  The node shares this core too, or roams: it tries both under load
// (load_trials.h).  The node keeps the server's priority.  A node of higher priority would preempt
// the server at every request and so lose its batches.  Both are SCHED_BATCH (the server by
// runtime/preload/attach/init.cc): a woken thread does not preempt the thread that wakes it, so
// that more is done at once (ARCHITECTURE.md section 9 has the figures).
//
// Threads: the node's only one.

#include <sched.h>

#include <cstdint>
#include <string>

#include "proxy/host/config.h"
#include "runtime/setup/messages.h"

namespace crane::node {

// For nice(2).  An analysis replica uses it; its server has even less priority (server_monitor.cc).
inline constexpr int kLowestNice = 19;

// Checks that this machine has the processors and the NUMA node that the group's file `path` gives
// the replica.  If the file names no processors, `config.cpus` become those of the NUMA node.
Outcome check_placement(const std::string& path, Config& config);

// Makes the calling thread SCHED_BATCH.  Binds it and all later children to `config.cpus`, makes
// them prefer memory of `config.numa_node`, and sets `config.processors`.
void place_node(Config& config);

// The processors that the calling thread may use, as "0-3,8".
std::string own_processors();

enum class NodePlace : std::uint8_t { kRoams, kShares };

// Moves the calling thread, the node's, between all processors that place_node() allows and the
// core of its server.  The destructor lets the thread roam.
class NodePlacement {
 public:
  explicit NodePlacement(const Config& config);
  ~NodePlacement();
  NodePlacement(const NodePlacement&) = delete;
  NodePlacement& operator=(const NodePlacement&) = delete;

  // False: the server is not bound to a core.
  bool has_choice() const noexcept { return cpu_ >= 0; }
  // The number of processors over which it roams; 0: unknown.
  int processors() const noexcept { return CPU_COUNT(&all_); }
  // REQUIRES has_choice(), or kRoams.
  void move_to(NodePlace place) noexcept;

 private:
  cpu_set_t all_{};
  const int cpu_;  // -1: there is no choice
  NodePlace place_ = NodePlace::kRoams;
};

// While this object lives, children of the calling thread start on `config.cpu`.
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
