// SPDX-License-Identifier: Apache-2.0
#pragma once
// The versions that two builds of Crane must have in common.  Replicas of two builds may run in one
// group if all numbers in kAgreedVersions are equal.  Then a replica of one build can follow, lead
// and recover from a replica of the other.  The bytes of the programs may differ.
//
// The segment (dmt::kLayoutVersion) is not in the table: only a replica's node and its server's
// libcrane.so share it.  Both come from one build, unless a server is restored from a checkpoint of
// its processes.  Such a restore is refused if the segment versions differ.
//
// If only the schedule differs, one build takes over from another at one log entry, at which the
// server of every replica ends (proxy/host/recovery/server_restart.h, HANDOVER-1).
//
// CONTRIBUTING.md explains when to raise which number; tests/unit/node/versions_test.cc and
// tests/e2e/schedules.py detect a forgotten change.
//
// Threads: plain values.

#include <cstdint>

namespace crane {

namespace versions {
// The data that nodes exchange: frames, messages of the protocol, memory that nodes share.
inline constexpr std::uint32_t kWire = 3;
// Entries and their bodies, and their format in a store.
inline constexpr std::uint32_t kLog = 2;
// Everything that decides which thread takes which turn with which result: libcrane.so, dmt.
inline constexpr std::uint32_t kSchedule = 8;
// The files of a checkpoint and the node's notes in it.  Crane 0.1.0 before this table had 1.
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
