// SPDX-License-Identifier: Apache-2.0
#include "consensus/sim/faults.h"

#include <cstdio>

namespace crane::consensus::sim {

Faults Faults::draw(std::uint64_t seed) {
  Random r(seed ^ 0xfa01'75ed'0000'0001U);
  Faults f;
  f.replicas = f.members = r.chance(350) ? 5 : 3;
  const bool small_ring = r.chance(300);
  f.ring_bytes = small_ring ? 4096 : 1U << 18;
  f.payload_max = small_ring ? r.between(8, 400) : r.between(8, 600);
  f.propose_every_ns = r.between(500'000, 8'000'000);
  f.duration_ns = r.between(200'000'000, 700'000'000);
  f.death_is_seen = r.chance(500);
  f.dead_memory_reachable = r.chance(500);
  f.delay_max_ns = r.between(20'000, r.chance(300) ? 3'000'000 : 300'000);
  f.slow_per_mille = r.chance(500) ? r.below(30) : 0;
  f.slow_max_ns = r.between(1'000'000, 40'000'000);
  f.timeout_ns = r.between(2'000'000, 30'000'000);
  f.torn_per_mille = r.chance(600) ? r.below(200) : 0;
  f.write_bytes_max = r.chance(500) ? 1 : 256U << 10;
  f.notice_max_ns = r.chance(500) ? 20'000 : r.between(20'000, 10'000'000);
  f.incident_every_ns = r.between(8'000'000, 80'000'000);
  f.cut_weight = r.below(5);
  f.isolate_weight = r.below(4);
  f.crash_weight = r.below(5);
  f.pause_weight = r.below(5);
  f.abdicate_weight = r.below(2);
  f.app_stall_weight = r.below(3);
  f.incident_max_ns = r.between(5'000'000, 150'000'000);
  f.aim_at_leader_per_mille = r.below(900);
  f.lost_max = r.chance(300) ? (f.replicas - 1U) / 2U : 0;
  f.async_fence_per_mille = r.chance(500) ? r.below(800) : 0;
  f.skew_ppm_max = r.chance(500) ? r.below(50'000) : 0;
  if (r.chance(250)) {  // a storm: elections are cut short again and again
    f.incident_every_ns = r.between(2'000'000, 10'000'000);
    f.incident_max_ns = r.between(3'000'000, 40'000'000);
    f.aim_at_leader_per_mille = r.between(500, 950);
  }
  f.disk = r.chance(300);
  if (f.disk) {
    f.sync_max_ns = r.between(50'000, r.chance(300) ? 5'000'000 : 500'000);
    f.slow_sync_per_mille = r.chance(400) ? r.below(100) : 0;
    f.slow_sync_max_ns = r.between(1'000'000, 60'000'000);
    f.power_weight = r.below(4);
    f.blackout_weight = r.below(3);
    f.rot_per_mille = r.chance(500) ? r.below(700) : 0;
  }
  if (r.chance(400)) {  // members come and go: 3 -> 5 -> 4 -> 3 and the like
    f.change_every_ns = r.between(8'000'000, 60'000'000);
    if (r.chance(700)) f.replicas = 5;
    f.members = static_cast<std::uint8_t>(r.between(r.chance(200) ? 1 : 2, f.replicas));
    f.lost_max = r.chance(600) ? r.between(1, 4) : 0;
  }
  return f;
}

Faults Faults::draw_changes(std::uint64_t seed) {
  Faults f = draw(seed);
  Random r(seed ^ 0xc0f1'9000'0000'0002U);
  f.replicas = 5;
  f.members = static_cast<std::uint8_t>(r.between(2, 4));
  f.ring_bytes = 1U << 18;
  f.duration_ns = 600'000'000;
  f.change_every_ns = r.between(2'000'000, 12'000'000);
  f.incident_every_ns = r.between(8'000'000, 25'000'000);
  f.incident_max_ns = r.between(20'000'000, 80'000'000);
  f.cut_weight = r.between(1, 4);
  f.isolate_weight = r.between(3, 6);
  f.pause_weight = r.between(2, 5);
  f.crash_weight = r.below(2);
  f.aim_at_leader_per_mille = r.between(500, 900);
  return f;
}

Faults Faults::draw_laps(std::uint64_t seed) {
  Faults f = draw(seed);
  Random r(seed ^ 0x1a95'0000'0000'0003U);
  f.replicas = f.members = r.chance(500) ? 5 : 3;
  f.ring_bytes = 4096;
  f.payload_max = r.between(100, 400);
  f.propose_every_ns = r.between(300'000, 2'000'000);
  f.duration_ns = 600'000'000;
  f.incident_every_ns = r.between(5'000'000, 30'000'000);
  f.incident_max_ns = r.between(20'000'000, 100'000'000);
  f.cut_weight = r.between(1, 6);
  f.isolate_weight = r.between(2, 6);
  f.pause_weight = r.between(1, 4);
  f.crash_weight = r.below(3);
  f.disk = true;
  f.sync_max_ns = r.between(50'000, 300'000);
  f.power_weight = r.below(2);
  f.blackout_weight = r.below(2);
  f.change_every_ns = r.chance(300) ? r.between(8'000'000, 60'000'000) : 0;
  return f;
}

std::string Faults::print() const {
  char text[800];
  const auto u = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::snprintf(
      text, sizeof text,
      "replicas %u of %u ring %llu payload<=%llu propose/%lluus faults %llums seen %d dead-memory "
      "%d delay %llu..%lluus slow %llu/1000<=%lluus timeout %lluus torn %llu/1000 "
      "incident/%lluus<=%lluus cut %llu isolate %llu crash %llu pause %llu abdicate %llu "
      "stall %llu leader %llu/1000 lost<=%llu async-fence %llu/1000 skew<=%lluppm "
      "write<=%llu notice<=%lluus disk %d sync<=%lluus slow %llu/1000<=%lluus power %llu blackout "
      "%llu rot %llu/1000 change/%lluus",
      members, replicas, u(ring_bytes), u(payload_max), u(propose_every_ns / 1000),
      u(duration_ns / 1'000'000), death_is_seen, dead_memory_reachable, u(delay_min_ns / 1000),
      u(delay_max_ns / 1000), u(slow_per_mille), u(slow_max_ns / 1000), u(timeout_ns / 1000),
      u(torn_per_mille), u(incident_every_ns / 1000), u(incident_max_ns / 1000), u(cut_weight),
      u(isolate_weight), u(crash_weight), u(pause_weight), u(abdicate_weight), u(app_stall_weight),
      u(aim_at_leader_per_mille), u(lost_max), u(async_fence_per_mille), u(skew_ppm_max),
      u(write_bytes_max), u(notice_max_ns / 1000), disk, u(sync_max_ns / 1000),
      u(slow_sync_per_mille), u(slow_sync_max_ns / 1000), u(power_weight), u(blackout_weight),
      u(rot_per_mille), u(change_every_ns / 1000));
  return text;
}

}  // namespace crane::consensus::sim
