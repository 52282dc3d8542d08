// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where checkpoints are in a world of replicas: in one directory that all replicas of a machine
// see, or in one per host, between which they travel; a host that is lost takes its own with it
// until it is back.
//
// Threads: one.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "proxy/sim/echo_server.h"

namespace crane::replica::sim {

// A checkpoint in a directory: replicas of that host can begin there.
struct StoredCheckpoint {
  std::uint64_t at = 0;
  unsigned by = 0;
  std::uint64_t hash = 0;     // of what a server that begins there has run,
  std::uint32_t version = 2;  // and which version of it
  // .. and what it has to do with clients; nullptr: there was none.
  std::shared_ptr<const proxy::sim::EchoServer> clients = nullptr;
  bool damaged = false;  // it cannot be unpacked
  // Replicas that began there differed at that entry, so often in a row.
  std::uint64_t differed_at = 0;
  unsigned differed = 0;

  // As checkpoint::Checkpoints::note_difference().
  bool distrusted() const { return differed >= 2; }
};

class ModelHosts {
 public:
  // `several`: each replica has a host of its own.
  ModelHosts(unsigned replicas, bool several)
      : several_(several), directories_(several ? replicas : 1), back_ns_(replicas) {}

  bool several() const { return several_; }
  // What that replica sees, the oldest first.
  std::vector<StoredCheckpoint>& seen_by(unsigned id) { return directories_[several_ ? id : 0]; }
  const std::vector<StoredCheckpoint>& seen_by(unsigned id) const {
    return directories_[several_ ? id : 0];
  }
  const std::vector<std::vector<StoredCheckpoint>>& directories() const { return directories_; }
  // Each replica keeps two of its own that are trusted, and the one at `relied` (IMAGE-3, IMAGE-5).
  void publish(const StoredCheckpoint& one, std::uint64_t relied);
  // A replica differed at entry `at`: it began at the checkpoint at `began`, and was equal to the
  // others up to `verified`.
  void differed(unsigned id, std::uint64_t began, std::uint64_t at, std::uint64_t verified);
  // As START-3 orders them for a replica that begins: newest first, but the distrusted last.
  std::vector<StoredCheckpoint*> to_try(unsigned id);
  // The newest behind that entry which another host gives; `gives`: who is there.
  std::optional<StoredCheckpoint> fetch(unsigned to, std::uint64_t behind,
                                        const std::function<bool(unsigned)>& gives) const;

  // --- a host is lost, and comes back
  void lose(unsigned id, std::int64_t until_ns) { back_ns_[id] = until_ns; }
  bool lost(unsigned id) const { return back_ns_[id] != 0; }
  // True once, when it is back.
  bool comes_back(unsigned id, std::int64_t now_ns) {
    if (back_ns_[id] == 0 || now_ns < back_ns_[id]) return false;
    back_ns_[id] = 0;
    return true;
  }

 private:
  const bool several_;
  std::vector<std::vector<StoredCheckpoint>> directories_;
  std::vector<std::int64_t> back_ns_;  // 0: it is there
};

}  // namespace crane::replica::sim
