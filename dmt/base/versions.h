// SPDX-License-Identifier: Apache-2.0
#pragma once
// What two builds of Crane must have in common.  Replicas of two builds may run in one group if
// all numbers of kAgreedVersions are equal: then a replica of one build can follow, lead and
// recover from a replica of the other.  The bytes of the programs may differ.
//
// The segment (dmt::kLayoutVersion) is not among them: only the node of a replica and the
// libcrane.so of its server share it.  Both come from one build, unless a server is restored from a
// checkpoint of its processes, which is refused when the segment's versions differ.
//
// Where only the schedule differs, a build takes over from another at one entry of the log, at
// which every replica's server ends (proxy/host/recovery/server_restart.h, HANDOVER-1).
//
// CONTRIBUTING.md says when to raise which number; tests/unit/node/versions_test.cc and
// tests/e2e/schedules.py notice when that was forgotten.
//
// Threads: plain values.

#include <cstdint>

namespace crane {

namespace versions {
// What nodes say to each other: frames, messages of the protocol, memory that nodes share.
inline constexpr std::uint32_t kWire = 3;
// Entries and their bodies, and how a store keeps them.
inline constexpr std::uint32_t kLog = 2;
// Everything that decides which thread takes which turn, and with which result: libcrane.so, dmt.
inline constexpr std::uint32_t kSchedule = 8;
// The files of a checkpoint, and what a node notes in it.  Crane 0.1.0 before this table had 1.
inline constexpr std::uint32_t kCheckpoint = 2;
}  // namespace versions

struct AgreedVersion {
  const char* name;
  std::uint32_t number;
};
inline constexpr AgreedVersion kAgreedVersions[] = {{"wire", versions::kWire},
                                                    {"log", versions::kLog},
                                                    {"schedule", versions::kSchedule},
                                                    {"checkpoint", versions::kCheckpoint}};

}  // namespace crane
