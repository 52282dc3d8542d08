// SPDX-License-Identifier: Apache-2.0
#include "consensus/sim/faults.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace crane::consensus::sim {

Faults Faults::draw_first(std::uint64_t seed) {
  Random r(seed ^ 0xfa01'75ed'0000'0001U);
  Faults f;
  f.replicas = f.members = r.chance(350) ? 5 : 3;
  const bool small_ring = r.chance(300);
  f.ring_bytes = small_ring ? 8192 : 1U << 18;
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
  f.views_min = 3;
  return f;
}

Faults Faults::draw(std::uint64_t seed) {
  Faults f =
      Random(seed ^ 0xfa01'75ed'0000'0003U).chance(200) ? draw_changes(seed) : draw_first(seed);
  f.draw_more(seed);
  return f;
}

Faults Faults::draw_changes(std::uint64_t seed) {
  Faults f = draw_first(seed);
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

Faults Faults::draw_analysis(std::uint64_t seed) {
  Faults f = draw_changes(seed);
  Random r(seed ^ 0xa4a1'7515'0000'0005U);
  f.analysis = true;
  f.lost_max = r.between(1, 4);
  f.crash_weight = r.between(1, 4);
  return f;
}

Faults Faults::draw_laps(std::uint64_t seed) {
  Faults f = draw_first(seed);
  Random r(seed ^ 0x1a95'0000'0000'0003U);
  f.replicas = f.members = r.chance(500) ? 5 : 3;
  f.ring_bytes = 4096;
  f.in_flight_bytes_max = 2000;
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

Faults Faults::draw_slow_disks(std::uint64_t seed) {
  Faults f = draw_first(seed);
  Random r(seed ^ 0x510d'd15c'0000'0006U);
  f.disk = true;
  f.ring_bytes = 1U << 18;
  f.sync_min_ns = r.between(20'000'000, 200'000'000);
  f.sync_max_ns = f.sync_min_ns + r.below(f.sync_min_ns);
  f.slow_sync_per_mille = 0;
  f.change_every_ns = 0;
  f.members = f.replicas;
  f.lost_max = 0;
  f.power_weight = r.below(2);
  f.blackout_weight = 0;
  f.rot_per_mille = 0;
  f.incident_every_ns = r.between(100'000'000, 400'000'000);
  f.duration_ns = 2'000'000'000;
  f.settle_ns = 12'000'000'000;
  f.propose_every_ns = r.between(2'000'000, 20'000'000);
  return f;
}

Faults Faults::draw_checkpoints(std::uint64_t seed) {
  Faults f = draw_first(seed);
  Random r(seed ^ 0xc4ec'4901'0000'0004U);
  f.ring_bytes = r.chance(600) ? 8192 : 1U << 18;
  f.payload_max = r.between(8, 400);
  f.propose_every_ns = r.between(300'000, 4'000'000);
  f.crash_weight = r.between(3, 8);
  f.isolate_weight = r.between(1, 4);
  f.incident_max_ns = r.between(5'000'000, 100'000'000);
  f.lost_max = r.between(1, 6);
  f.checkpoint_every_ns = r.between(5'000'000, 80'000'000);
  if (!f.disk && r.chance(500)) {
    f.disk = true;
    f.power_weight = r.below(4);
    f.blackout_weight = r.below(3);
  }
  f.keeps_log = !f.disk && Random(seed ^ 0x4ee9'109c'0000'0007U).chance(500);
  return f;
}

void Faults::condense() {
  if (scene != Scene::kTooMuchLost) duration_ns /= 3;
  incident_every_ns /= 3;
  incident_max_ns /= 2;
  change_every_ns /= 3;
  checkpoint_every_ns /= 3;
  propose_every_ns /= 2;
  calm_propose_ns = 25'000'000;
}

// From a separate generator: additions here leave the rest of a seed's world unchanged.
void Faults::draw_more(std::uint64_t seed) {
  Random r(seed ^ 0xfa01'75ed'0000'0002U);
  const auto sometimes = [&r](std::uint64_t weight) { return r.chance(300) ? weight : 0; };
  mute_weight = sometimes(r.between(1, 3));
  refuse_weight = sometimes(r.between(1, 3));
  race_weight = sometimes(r.between(1, 4));
  flap_weight = sometimes(r.between(1, 3));
  jump_weight = sometimes(r.between(1, 3));
  jump_max_ns = r.between(1'000'000, r.chance(300) ? 3'600'000'000'000 : 300'000'000);
  slow_nic_weight = sometimes(r.between(1, 3));
  slow_nic_factor = r.between(5, 100);
  duplicate_per_mille = sometimes(r.below(300));
  late_per_mille = sometimes(r.below(200));
  late_max_ns = r.between(1'000'000, 60'000'000);
  bad_disk_weight = sometimes(disk ? 2 : 0);
  if (ring_bytes == 8192 && r.chance(300)) {
    forge = true;
    payload_max = 208;  // such that headers of the next lap fall into payloads (Cluster::forge)
  }
  constexpr Scene kScenes[] = {Scene::kOnePeerFails, Scene::kThreeWayCut, Scene::kTooMuchLost};
  if (r.chance(90)) {
    draw_scene(r, kScenes[r.below(3)]);
  } else if (r.chance(30)) {
    draw_scene(r, Scene::kAllUnfit);
  }
}

void Faults::draw_scene(Random& r, Scene what) {
  scene = what;
  // A quiet environment, so that only the scene causes what happens.
  ring_bytes = 1U << 18;
  forge = false;
  duration_ns = r.between(50'000'000, 200'000'000);
  if (scene == Scene::kTooMuchLost) duration_ns += 150'000'000;  // it is quiet once all is lost
  delay_max_ns = r.between(20'000, 300'000);
  slow_per_mille = late_per_mille = duplicate_per_mille = 0;
  notice_max_ns = std::min<std::uint64_t>(notice_max_ns, 1'000'000);
  timeout_ns = r.between(1'000'000, 10'000'000);
  skew_ppm_max = std::min<std::uint64_t>(skew_ppm_max, 10'000);
  lost_max = 0;
  disk = false;
  power_weight = blackout_weight = 0;
  cut_weight = isolate_weight = crash_weight = pause_weight = app_stall_weight = 0;
  mute_weight = refuse_weight = race_weight = flap_weight = jump_weight = slow_nic_weight = 0;
  bad_disk_weight = 0;
  change_every_ns = 0;
  members = replicas;
  abdicate_weight = 1;
}

namespace {

struct FaultClass {
  const char* name;
  void (*remove)(Faults&);
};
constexpr FaultClass kClasses[] = {
    {"cut", [](Faults& f) { f.cut_weight = 0; }},
    {"isolate", [](Faults& f) { f.isolate_weight = 0; }},
    {"mute", [](Faults& f) { f.mute_weight = 0; }},
    {"refuse", [](Faults& f) { f.refuse_weight = 0; }},
    {"crash", [](Faults& f) { f.crash_weight = 0; }},
    {"flap", [](Faults& f) { f.flap_weight = 0; }},
    {"pause", [](Faults& f) { f.pause_weight = 0; }},
    {"abdicate", [](Faults& f) { f.abdicate_weight = 0; }},
    {"race", [](Faults& f) { f.race_weight = 0; }},
    {"jump", [](Faults& f) { f.jump_weight = 0; }},
    {"stall", [](Faults& f) { f.app_stall_weight = 0; }},
    {"lost", [](Faults& f) { f.lost_max = 0; }},
    {"blackout", [](Faults& f) { f.blackout_weight = 0; }},
    {"power", [](Faults& f) { f.power_weight = 0; }},
    {"rot", [](Faults& f) { f.rot_per_mille = 0; }},
    {"slow-disk", [](Faults& f) { f.slow_sync_per_mille = 0; }},
    {"bad-disk", [](Faults& f) { f.bad_disk_weight = 0; }},
    {"disk",
     [](Faults& f) {
       f.disk = false;
       f.power_weight = f.blackout_weight = 0;
     }},
    {"slow-nic", [](Faults& f) { f.slow_nic_weight = 0; }},
    {"slow", [](Faults& f) { f.slow_per_mille = 0; }},
    {"late", [](Faults& f) { f.late_per_mille = 0; }},
    {"duplicate", [](Faults& f) { f.duplicate_per_mille = 0; }},
    {"torn", [](Faults& f) { f.torn_per_mille = 0; }},
    {"async-fence", [](Faults& f) { f.async_fence_per_mille = 0; }},
    {"skew", [](Faults& f) { f.skew_ppm_max = 0; }},
    {"late-notice", [](Faults& f) { f.notice_max_ns = 20'000; }},
    {"forge", [](Faults& f) { f.forge = false; }},
    {"small-ring", [](Faults& f) { f.ring_bytes = 1U << 18; }},
    {"small-writes", [](Faults& f) { f.write_bytes_max = 256U << 10; }},
    {"changes", [](Faults& f) { f.change_every_ns = 0; }},
    {"keep", [](Faults& f) { f.keeps_log = false; }},
    {"five",
     [](Faults& f) {
       f.replicas = 3;
       f.members = std::min<std::uint8_t>(f.members, f.analysis ? 2 : 3);
     }},
};

}  // namespace

const char* Faults::fault_class(std::size_t i) {
  return i < std::size(kClasses) ? kClasses[i].name : nullptr;
}

bool Faults::without(std::string_view names) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto* c = std::find_if(std::begin(kClasses), std::end(kClasses),
                                 [name](const FaultClass& x) { return name == x.name; });
    if (c == std::end(kClasses)) return false;
    c->remove(*this);
  }
  return true;
}

std::string Faults::print() const {
  char text[1024];
  const auto u = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::snprintf(
      text, sizeof text,
      "replicas %u of %u ring %llu payload<=%llu propose/%lluus faults %llums seen %d dead-memory "
      "%d delay %llu..%lluus slow %llu/1000<=%lluus timeout %lluus torn %llu/1000 "
      "incident/%lluus<=%lluus cut %llu isolate %llu crash %llu pause %llu abdicate %llu "
      "stall %llu leader %llu/1000 lost<=%llu async-fence %llu/1000 skew<=%lluppm "
      "write<=%llu notice<=%lluus disk %d sync %llu..%lluus slow %llu/1000<=%lluus power %llu "
      "blackout %llu rot %llu/1000 change/%lluus "
      "scene %u forge %d mute %llu refuse %llu race %llu flap %llu "
      "checkpoint/%lluus keep %d "
      "jump %llu<=%lluus slow-nic %llu*%llu bad-disk %llu duplicate %llu/1000 late "
      "%llu/1000<=%lluus",
      members, replicas, u(ring_bytes), u(payload_max), u(propose_every_ns / 1000),
      u(duration_ns / 1'000'000), death_is_seen, dead_memory_reachable, u(delay_min_ns / 1000),
      u(delay_max_ns / 1000), u(slow_per_mille), u(slow_max_ns / 1000), u(timeout_ns / 1000),
      u(torn_per_mille), u(incident_every_ns / 1000), u(incident_max_ns / 1000), u(cut_weight),
      u(isolate_weight), u(crash_weight), u(pause_weight), u(abdicate_weight), u(app_stall_weight),
      u(aim_at_leader_per_mille), u(lost_max), u(async_fence_per_mille), u(skew_ppm_max),
      u(write_bytes_max), u(notice_max_ns / 1000), disk, u(sync_min_ns / 1000),
      u(sync_max_ns / 1000), u(slow_sync_per_mille), u(slow_sync_max_ns / 1000), u(power_weight),
      u(blackout_weight), u(rot_per_mille), u(change_every_ns / 1000), static_cast<unsigned>(scene),
      forge, u(mute_weight), u(refuse_weight), u(race_weight), u(flap_weight),
      u(checkpoint_every_ns / 1000), keeps_log, u(jump_weight), u(jump_max_ns / 1000),
      u(slow_nic_weight), u(slow_nic_factor), u(bad_disk_weight), u(duplicate_per_mille),
      u(late_per_mille), u(late_max_ns / 1000));
  return text;
}

}  // namespace crane::consensus::sim
