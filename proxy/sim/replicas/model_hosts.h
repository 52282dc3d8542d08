// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the checkpoints of a world of replicas are: in one directory for all replicas of a machine,
// or in one per host, between which they are fetched.  A lost host takes its directory with it
// until it returns.
//
// Threads: one.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "proxy/sim/echo_server.h"

namespace crane::replica::sim {

// A checkpoint in a directory; replicas of that host can begin at it.
struct StoredCheckpoint {
  std::uint64_t at = 0;
  unsigned by = 0;
  std::uint64_t hash = 0;     // of what a server that begins there has run
  std::uint32_t version = 2;  // the version of that server
  // The server's state of clients; nullptr: there was none.
  std::shared_ptr<const proxy::sim::EchoServer> clients = nullptr;
  bool damaged = false;  // it cannot be unpacked
  bool starts = true;    // false: no server starts there
  // The entry at which replicas that began there differed or failed, and how often in a row.
  std::uint64_t differed_at = 0;
  unsigned differed = 0;

  // As checkpoint::Checkpoints::note_difference().
  bool distrusted() const { return differed >= 2; }
};

class ModelHosts {
 public:
  // `several`: each replica has its own host.
  ModelHosts(unsigned replicas, bool several)
      : several_(several), directories_(several ? replicas : 1), back_ns_(replicas) {}

  bool several() const { return several_; }
  // The checkpoints that this replica can use, oldest first.
  std::vector<StoredCheckpoint>& seen_by(unsigned id) { return directories_[several_ ? id : 0]; }
  const std::vector<StoredCheckpoint>& seen_by(unsigned id) const {
    return directories_[several_ ? id : 0];
  }
  const std::vector<std::vector<StoredCheckpoint>>& directories() const { return directories_; }
  // Adds a checkpoint.  Each replica keeps two of its own that are trusted, and the one at `relied`
  // (IMAGE-3, IMAGE-5).
  void publish(const StoredCheckpoint& one, std::uint64_t relied);
  // Where a replica began: the checkpoint of that replica at that entry; 0: at none.
  struct Began {
    std::uint64_t at = 0;
    unsigned by = 0;
  };
  // A replica differed at entry `at`, and was equal to the others up to `verified`.
  void differed(unsigned id, Began began, std::uint64_t at, std::uint64_t verified);
  // It differed at `at`, or failed to start.
  void mark(unsigned id, Began began, std::uint64_t at);
  // In the order of START-3 for a replica that begins: newest first, distrusted ones last.
  std::vector<StoredCheckpoint*> to_try(unsigned id);
  // Returns the newest checkpoint after entry `behind` that another host provides.  `has_files`
  // returns whether a host is present.
  std::optional<StoredCheckpoint> fetch(unsigned to, std::uint64_t behind,
                                        const std::function<bool(unsigned)>& has_files) const;

  // --- a host is lost, and returns
  void lose(unsigned id, std::int64_t until_ns) { back_ns_[id] = until_ns; }
  bool lost(unsigned id) const { return back_ns_[id] != 0; }
  // True once, when the host has returned.
  bool returns(unsigned id, std::int64_t now_ns) {
    if (back_ns_[id] == 0 || now_ns < back_ns_[id]) return false;
    back_ns_[id] = 0;
    return true;
  }

 private:
  const bool several_;
  std::vector<std::vector<StoredCheckpoint>> directories_;
  std::vector<std::int64_t> back_ns_;  // when the host returns; 0: it is present
};

}  // namespace crane::replica::sim
