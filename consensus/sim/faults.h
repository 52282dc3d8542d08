// SPDX-License-Identifier: Apache-2.0
#pragma once
// All faults of a world, as one struct that is drawn from the seed and printed first.

#include <cstdint>
#include <string>
#include <string_view>

#include "consensus/sim/world.h"
#include "dmt/base/ids.h"

namespace crane::consensus::sim {

// A world's plot.
enum class Scene : std::uint8_t {
  kStorm,         // everything at random; then calm, in which the group must become live
  kOnePeerFails,  // L5: every operation on one follower fails at once, for ever
  kThreeWayCut,   // L1: two replicas cannot see each other, the others see both, for ever
  kTooMuchLost,   // a majority's logs are wiped; a replica must notice
  kAllUnfit,      // C6: all replicas abdicate for long, and fall behind; then some are fit again
};

// One of several weights was drawn: `pick` is below their sum.  Returns whether it falls on this
// weight; to be called for one after the other.
inline bool falls_on(std::uint64_t& pick, std::uint64_t weight) {
  const bool hit = pick < weight;
  pick = hit ? ~std::uint64_t{0} : pick - weight;
  return hit;
}

struct Faults {
  // The group.
  std::uint8_t replicas = 3;  // slots
  std::uint8_t members = 3;   // the first ones vote from the beginning
  std::uint64_t ring_bytes = 1U << 16;
  std::uint64_t payload_max = 200;
  std::uint64_t propose_every_ns = 2'000'000;
  std::uint64_t write_bytes_max = 256U << 10;
  std::uint64_t in_flight_bytes_max = 1U << 20;
  std::uint64_t duration_ns = 800'000'000;  // of the faults; afterwards the group must be live
  bool death_is_seen = true;                // PeerDown comes, as from a pidfd on one host
  bool dead_memory_reachable = true;        // shm: a dead process's memory takes writes

  // The network, per operation.
  std::uint64_t delay_min_ns = 5'000;
  std::uint64_t delay_max_ns = 200'000;
  std::uint64_t slow_per_mille = 10;
  std::uint64_t slow_max_ns = 20'000'000;
  std::uint64_t timeout_ns = 10'000'000;  // until an operation over a cut link fails
  std::uint64_t torn_per_mille = 50;      // a write lands in two parts at two times
  std::uint64_t notice_max_ns = 20'000;   // until a follower looks at bytes that landed

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
  std::uint64_t lost_max = 0;             // restarts without memory (C5)
  std::uint64_t change_every_ns = 0;      // interval of changes of members or leader; 0: none
  std::uint64_t checkpoint_every_ns = 0;  // interval of checkpoints; 0: servers outlive their nodes
  bool analysis = false;                  // the last slot belongs to an analysis replica
  bool keeps_log = false;                 // memory mode: logs stay whole (CORE-C7)
  std::uint64_t async_fence_per_mille = 300;  // the answer to a revoke comes later
  std::uint64_t skew_ppm_max = 0;

  // Disk mode: promises and entries are durable before they count.
  bool disk = false;
  std::uint64_t sync_min_ns = 20'000;  // of one transaction
  std::uint64_t sync_max_ns = 400'000;
  std::uint64_t slow_sync_per_mille = 0;  // and the rate of slow ones
  std::uint64_t slow_sync_max_ns = 20'000'000;
  std::uint64_t power_weight = 0;     // a replica's machine loses its power
  std::uint64_t blackout_weight = 0;  // all do, at once
  std::uint64_t rot_per_mille = 0;    // of power losses that damage the store (at most lost_max)

  Scene scene = Scene::kStorm;
  std::uint64_t settle_ns = 1'500'000'000;  // time to become live after the faults
  std::uint64_t views_min = 0;              // hand over until there were so many leaders
  bool forge = false;                       // U11: client bytes shaped as entries of the next lap
  std::uint64_t mute_weight = 0;            // all links of a replica in one direction
  std::uint64_t refuse_weight = 0;          // operations on a replica fail at once
  std::uint64_t race_weight = 0;  // a false death: several followers compete with a living leader
  std::uint64_t flap_weight = 0;  // restarts on surviving memory in rapid succession
  std::uint64_t jump_weight = 0;  // a replica's clock jumps forward
  std::uint64_t jump_max_ns = 0;
  std::uint64_t slow_nic_weight = 0;  // all operations of one replica take this much longer
  std::uint64_t slow_nic_factor = 1;
  std::uint64_t bad_disk_weight = 0;      // its disk reports an error (disk mode): the replica ends
  std::uint64_t duplicate_per_mille = 0;  // messages that arrive twice
  std::uint64_t late_per_mille = 0;       // messages that delay their link
  std::uint64_t late_max_ns = 0;

  std::uint64_t calm_propose_ns = 0;  // the client's interval after the last fault; 0: as before

  std::uint64_t more_weights() const {
    return mute_weight + refuse_weight + race_weight + flap_weight + jump_weight + slow_nic_weight +
           bad_disk_weight;
  }
  static Faults draw(std::uint64_t seed);
  // Members change all the time, leaders are cut off, two of few voters are a majority.
  static Faults draw_changes(std::uint64_t seed);
  // Disk mode with rings that are small for the load: an absent replica is lapped, and fetches.
  static Faults draw_laps(std::uint64_t seed);
  // Servers die with their nodes and are restored from checkpoints; memory is lost often, rings are
  // small or large.  In memory mode half of the groups keep their logs whole.
  static Faults draw_checkpoints(std::uint64_t seed);
  // Disk mode: promises take longer than a candidate waits at first, entries longer than a leader
  // waits for progress.
  static Faults draw_slow_disks(std::uint64_t seed);
  // As draw_changes; an analysis replica comes, leaves and loses its memory; operators err, too.
  static Faults draw_analysis(std::uint64_t seed);
  // Returns the slot of the analysis replica, or kReplicasMax without one.
  unsigned analysis_slot() const { return analysis ? replicas - 1U : unsigned{kReplicasMax}; }
  // Shortens the run: the same faults follow each other faster, and the calm at the end is as long,
  // but has fewer entries.
  void condense();
  std::string print() const;
  // Removes classes of faults by name, separated by commas; false if a name is unknown.
  bool without(std::string_view names);
  // The i-th class's name, or nullptr after the last one.
  static const char* fault_class(std::size_t i);

 private:
  static Faults draw_first(std::uint64_t seed);
  void draw_more(std::uint64_t seed);
  void draw_scene(Random& r, Scene what);
};

}  // namespace crane::consensus::sim
