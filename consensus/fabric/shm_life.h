// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process that dies says so at once: a robust mutex per watcher, held by the process for all its
// life.
//
// A pidfd becomes readable when the kernel has torn down the process's memory and files, which
// takes milliseconds for a replica with large mappings.  A robust mutex is given up at the very
// start of that: a thread that waits for it learns of the death some hundred microseconds after the
// signal. A hint that comes early, for fail-over; safety rests on fences, and the pidfd is still
// watched.
//
//   <dir>/r<i>/life   LifeLine of the process that is replica i: one mutex per replica; a new file
//                     for each process
//
// Threads: a LifeLine belongs to the thread that made it (the mutexes are held by it).  Each
// LifeWatch has one thread, which waits and does nothing else.

#include <cstdint>
#include <memory>
#include <string>

#include "consensus/fabric/shm_region.h"
#include "consensus/fabric/urgency.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

namespace crane::consensus::shm {

// Larger groups are watched by pidfd alone: a thread per pair is too many.
inline constexpr std::uint8_t kLifeWatchedMax = 9;

class LifeLine {
 public:
  LifeLine() = default;
  ~LifeLine();
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  // Replaces the file of an earlier process.  kSystem.
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

  // Waits for the end of the process whose life line lies in `directory`, as replica `self`; that
  // end is urgent if `urgency` is given.
  Outcome start(const std::string& directory, std::uint8_t replicas, ReplicaId self,
                std::shared_ptr<Urgency> urgency);
  // The descriptor is closed; the thread ends when the watched process does, and tells no peer.
  void stop() noexcept;
  // Readable once the process has ended; -1 while nothing is watched.
  int fd() const noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace crane::consensus::shm
