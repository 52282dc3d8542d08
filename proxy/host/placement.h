// SPDX-License-Identifier: Apache-2.0
#pragma once
// On which processors a replica runs, and how (DESIGN D10).
//
// The server's threads share one core, where a hand-off of the turn costs a tenth of one across
// cores.  The node shares it too, or roams: it tries both under load (load_trials.h).  The node
// keeps the server's priority: one that outranks it preempts it at every request and so loses its
// batches.  Both are SCHED_BATCH (the server by runtime/preload/attach/init.cc): who is woken does
// not preempt who wakes it, so that more is done at once (ARCHITECTURE.md section 9 has the
// figures).
//
// Threads: the node's only one.

#include <sched.h>

#include <cstdint>
#include <string>

#include "proxy/host/config.h"
#include "runtime/setup/messages.h"

namespace crane::node {

// nice(2).  An analysis replica runs so, and has its server behind all others (server_monitor.cc).
inline constexpr int kLowestNice = 19;

// Looks whether this machine has the processors and the NUMA node that the group's file `path`
// gives the replica; `config.cpus` become those of the node where the file names none.
Outcome check_placement(const std::string& path, Config& config);

// Makes the calling thread SCHED_BATCH; binds it, and all that it starts later, to `config.cpus`
// and to memory of `config.numa_node`; and sets `config.processors`.
void place_node(Config& config);

// The processors that the calling thread may use, as "0-3,8".
std::string own_processors();

enum class NodePlace : std::uint8_t { kRoams, kShares };

// Where the calling thread, the node's, runs: over all that place_node() left it, or on the core of
// its server.  In the end the thread roams.
class NodePlacement {
 public:
  explicit NodePlacement(const Config& config);
  ~NodePlacement();
  NodePlacement(const NodePlacement&) = delete;
  NodePlacement& operator=(const NodePlacement&) = delete;

  // False: the server has no core of its own.
  bool has_choice() const noexcept { return cpu_ >= 0; }
  // Over which it roams; 0: the kernel does not tell.
  int processors() const noexcept { return CPU_COUNT(&all_); }
  // REQUIRES has_choice(), or kRoams.
  void move_to(NodePlace place) noexcept;

 private:
  cpu_set_t all_{};
  const int cpu_;  // -1: there is no choice
  NodePlace place_ = NodePlace::kRoams;
};

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
