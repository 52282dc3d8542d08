// SPDX-License-Identifier: Apache-2.0
#pragma once
// Many replicas of the consensus, without a server, as real processes on one machine.
//
// The idea: one process per replica runs Consensus on the shared-memory fabric in a poll(2) loop.
// Every replica folds each committed entry into a hash; equal index and hash on all of them means
// that all applied the same log.  The leader proposes on order and times each proposal; it can be
// killed, and started again as a pause on its surviving memory.
//
// Threads: one; the replicas are children of the caller, killed at destruction.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dmt/base/ids.h"

namespace crane::eval {

struct ShmGroupOptions {
  std::uint8_t replicas = 3;
  std::uint64_t ring_bytes = 256U << 10;
  std::size_t payload_bytes = 64;
};

class ShmGroup {
 public:
  explicit ShmGroup(const ShmGroupOptions& options);
  ~ShmGroup();
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  // The replica that leads, once there is one that is alive; -1 within `timeout_ms`.
  int wait_for_leader(int timeout_ms);
  // Has `leader` propose `count` entries, one after the other.  False on time-out, or when it lost
  // leadership meanwhile.
  bool propose(int leader, std::uint64_t count, int timeout_ms);
  // Waits until every live replica has applied the last entry of the most advanced one.
  bool wait_all_applied(int timeout_ms);
  // True when all live replicas that applied the same index have the same hash, and none saw a gap.
  bool all_agree() const;
  void kill(int replica);
  void start(int replica);  // again, after kill()

  bool alive(int replica) const { return pids_[static_cast<std::size_t>(replica)] > 0; }
  std::uint64_t applied(int replica) const;
  // Views seen by the replica; more than expected: needless elections.
  std::uint64_t view_counter(int replica) const;
  // Returns the latencies of all proposals so far, sorted, in ns; at most kLatenciesMax.
  std::vector<std::uint64_t> latencies_ns() const;

  struct Memory {
    std::uint64_t private_kib = 0;  // of all processes, not shared with another
    std::uint64_t shared_kib = 0;   // files of the group
  };
  Memory memory() const;
  // Processor time of all replicas so far.
  std::uint64_t processor_us() const;

 private:
  struct Shared;
  void run(std::uint8_t self);

  ShmGroupOptions options_;
  std::string directory_;
  Shared* shared_ = nullptr;
  std::vector<pid_t> pids_;
};

}  // namespace crane::eval
