// SPDX-License-Identifier: Apache-2.0
#pragma once
// What whoever runs a replica chooses about the memory of its log, and what came of it.
//
// Threads: plain values.

#include <cstdint>
#include <string>

namespace crane::consensus {

// How a grant to write is taken back over RDMA (FABRIC-F2 of fabric.h; Mu 5.2).
enum class Fence : std::uint8_t {
  kDeregister,      // of the memory's registration: safe everywhere, the default
  kAccessFlags,     // of the queue pair: only on devices of the allow-list, and a self-test may
                    // forbid it
  kQueuePairReset,  // the queue pair is destroyed, with all that it has under way; it is never used
                    // again anyway.  Not the state RESET, which soft-RoCE of Linux 6.1 enters while
                    // it still executes, and which corrupts it
};
const char* name(Fence fence) noexcept;

// Whether the log memory is on huge pages (huge_pages.h): without them it takes a device more
// translations, and nothing else changes.
enum class HugePages : std::uint8_t {
  kAuto,     // if it can be: the default
  kRequire,  // the replica does not start otherwise
  kNever,
};
const char* name(HugePages choice) noexcept;

// Empty where there is nothing to choose.
struct FabricStatus {
  std::string device;            // of RDMA
  std::string fence;             // a Fence
  std::string pages;             // size of the log memory's: huge if all of it is on huge ones
  std::uint64_t links_lost = 0;  // tcp: how often a peer that was there was given up
  std::uint64_t probes = 0;      // tcp: answers that were late, and asked for again
};

}  // namespace crane::consensus
