// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that goes wrong in a world, as one struct drawn from the seed and printed first.

#include <cstdint>
#include <string>

#include "consensus/sim/world.h"

namespace crane::consensus::sim {

struct Faults {
  // The group.
  std::uint8_t replicas = 3;  // slots
  std::uint8_t members = 3;   // the first ones vote from the beginning
  std::uint64_t ring_bytes = 1U << 16;
  std::uint64_t payload_max = 200;
  std::uint64_t propose_every_ns = 2'000'000;
  std::uint64_t write_bytes_max = 256U << 10;
  std::uint64_t duration_ns = 800'000'000;  // of the faults; what follows must be live
  bool death_is_seen = true;                // PeerDown, as pidfd gives on one host
  bool dead_memory_reachable = true;        // shm: a dead process's memory takes writes

  // The network, per operation.
  std::uint64_t delay_min_ns = 5'000;
  std::uint64_t delay_max_ns = 200'000;
  std::uint64_t slow_per_mille = 10;
  std::uint64_t slow_max_ns = 20'000'000;
  std::uint64_t timeout_ns = 10'000'000;  // until an operation over a cut link fails
  std::uint64_t torn_per_mille = 50;      // a write lands in two parts at two times
  std::uint64_t notice_max_ns = 20'000;   // until a follower looks at what landed

  // Incidents: one about every `incident_every_ns`, its kind by weight.
  std::uint64_t incident_every_ns = 40'000'000;
  std::uint64_t cut_weight = 3;      // one direction of a link
  std::uint64_t isolate_weight = 2;  // all links of a replica
  std::uint64_t crash_weight = 3;    // the process dies and is started again
  std::uint64_t pause_weight = 3;    // zombie: processor stopped, memory alive
  std::uint64_t abdicate_weight = 1;
  std::uint64_t app_stall_weight = 1;  // the application does not take entries
  std::uint64_t incident_max_ns = 120'000'000;
  std::uint64_t aim_at_leader_per_mille = 500;
  std::uint64_t lost_max = 0;                 // restarts without memory (C5)
  std::uint64_t change_every_ns = 0;          // a change of members or leader is asked for; 0: none
  std::uint64_t async_fence_per_mille = 300;  // the answer to a revoke comes later
  std::uint64_t skew_ppm_max = 0;

  // Disk mode: promises and entries are durable before they count.
  bool disk = false;
  std::uint64_t sync_max_ns = 400'000;    // of one transaction
  std::uint64_t slow_sync_per_mille = 0;  // and of slow ones
  std::uint64_t slow_sync_max_ns = 20'000'000;
  std::uint64_t power_weight = 0;     // a replica's machine loses its power
  std::uint64_t blackout_weight = 0;  // all do, at once
  std::uint64_t rot_per_mille = 0;    // of power losses damage the store (at most lost_max)

  static Faults draw(std::uint64_t seed);
  // Members change all the time, leaders are cut off, two voters of few make a majority.
  static Faults draw_changes(std::uint64_t seed);
  // Disk mode with rings that are small for what is proposed: who is away is lapped, and fetches.
  static Faults draw_laps(std::uint64_t seed);
  std::string print() const;
};

}  // namespace crane::consensus::sim
