// SPDX-License-Identifier: Apache-2.0
#pragma once
// Early notice of a peer's death: each process holds one robust mutex per watcher while it runs.
//
// A pidfd becomes readable only when the kernel has torn down the process's memory and files, which
// takes milliseconds for a replica with large mappings.  The kernel releases a robust mutex at the
// very start of that: a thread that waits for it notices the death some hundred microseconds after
// the signal.  This is a hint for a faster fail-over.  Safety depends on fences, and the pidfd is
// still watched.
//
//   <dir>/r<i>/life   LifeLine of replica i's process: one mutex per replica; each process makes a
//                     new file
//
// Threads: a LifeLine belongs to the thread that made it, which holds the mutexes.  Each LifeWatch
// has one thread, which only waits.

#include <cstdint>
#include <memory>
#include <string>

#include "consensus/fabric/shm_region.h"
#include "consensus/fabric/urgency.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus::shm {

// Larger groups use only pidfds: a thread per pair would be too many.
inline constexpr std::uint8_t kLifeWatchedMax = 9;

class LifeLine {
 public:
  LifeLine() = default;
  ~LifeLine();
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  // Replaces the file of an earlier process.  Errors: kSystem.
  Outcome hold(const std::string& directory, std::uint8_t replicas);

 private:
  Region region_;
  std::uint8_t held_ = 0;
};

class LifeWatch {
 public:
  LifeWatch() = default;
  ~LifeWatch() { stop(); }
  LifeWatch(const LifeWatch&) = delete;
  LifeWatch& operator=(const LifeWatch&) = delete;
  LifeWatch(LifeWatch&&) = default;
  LifeWatch& operator=(LifeWatch&&) = delete;

  // Begins to watch, as replica `self`, the process whose life line is in `directory`.  When that
  // process ends, `urgency`, if not null, gets begin().
  Outcome start(const std::string& directory, std::uint8_t replicas, ReplicaId self,
                std::shared_ptr<Urgency> urgency);
  // Closes the descriptor.  The thread ends silently when the watched process does.
  void stop() noexcept;
  // Readable once the process has ended; -1 while nothing is watched.
  int fd() const noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace crane::consensus::shm
