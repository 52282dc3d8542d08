// SPDX-License-Identifier: Apache-2.0
#pragma once
// The choices of an operator about a replica's log memory, and their result.
//
// Threads: plain values.

#include <cstdint>
#include <string>

namespace crane::consensus {

// How a write grant is revoked over RDMA (FABRIC-F2 of fabric.h; Mu 5.2).
enum class Fence : std::uint8_t {
  kDeregister,      // deregisters the memory: safe everywhere, the default
  kAccessFlags,     // changes the queue pair's flags: only on allow-listed devices that pass a
                    // self-test
  kQueuePairReset,  // destroys the queue pair, with all its work under way; it is never reused.
                    // Does not use the state RESET: soft-RoCE of Linux 6.1 enters it while it still
                    // executes, and is corrupted
};
const char* name(Fence fence) noexcept;

// Whether the log memory is on huge pages (huge_pages.h).  Without them a device needs more
// translations; nothing else changes.
enum class HugePages : std::uint8_t {
  kAuto,     // if possible: the default
  kRequire,  // without them the replica does not start
  kNever,
};
const char* name(HugePages choice) noexcept;

// A field is empty where the fabric has no choice.
struct FabricStatus {
  std::string device;            // the RDMA device
  std::string fence;             // name of a Fence
  std::string pages;             // page size of the log memory: huge if all of it is on huge pages
  std::uint64_t links_lost = 0;  // tcp: how often a connected peer was given up
  std::uint64_t probes = 0;      // tcp: late answers that were requested again
};

}  // namespace crane::consensus
