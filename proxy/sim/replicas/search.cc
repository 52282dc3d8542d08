// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/search.h"

#include <array>
#include <utility>

namespace crane::replica::sim {
namespace {

constexpr std::size_t kViolationsMost = 5;
constexpr std::uint64_t kLongTalk = 7;

// One fault of each kind, per replica if that makes a difference.
std::vector<Fault> small_faults(bool hosts, bool all) {
  std::vector<Fault> faults;
  for (unsigned r = 0; r < 3; ++r) {
    faults.push_back({0, FaultKind::kKill, r, 0});
    faults.push_back({0, FaultKind::kStop, r, 300 * kMs});
    faults.push_back({0, FaultKind::kPackFails, r, 0});
    faults.push_back({0, FaultKind::kSlow, r, 300 * kMs});
    faults.push_back({0, FaultKind::kTransfer, r, 0});
    if (all && hosts) faults.push_back({0, FaultKind::kHostLost, r, 300 * kMs});
  }
  if (all) {
    faults.push_back({0, FaultKind::kRestart, 0, 0});
    faults.push_back({0, FaultKind::kUpgrade, 0, 0});
  }
  faults.push_back({0, FaultKind::kKillAll, 0, 0});
  faults.push_back({0, FaultKind::kDamage, 0, 0});
  faults.push_back({0, FaultKind::kNoRestore, 0, 0});
  faults.push_back({0, FaultKind::kFullDisk, 0, 500 * kMs});
  faults.push_back({0, FaultKind::kNoSupervisor, 0, 500 * kMs});
  return faults;
}

}  // namespace

Result run_small(std::vector<Fault> faults, const SearchOptions& options, std::FILE* trace) {
  Settings settings;
  settings.ring_entries = 64;
  settings.inputs_per_s = 640;
  settings.busy_ns = 900 * kMs;
  settings.mutant = options.mutant;
  settings.hosts = options.hosts;
  if (options.clients) {
    settings.ring_entries *= 2;
    settings.inputs_per_s = 160;
    settings.clients = 2;
    settings.clients_seed = kLongTalk;
  }
  settings.trace = trace;
  return ReplicaWorld(settings, std::move(faults)).run();
}

std::string text_of(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& f : faults) {
    text += (text.empty() ? "" : ", ") + std::string(name(f.kind)) + " r" +
            std::to_string(f.replica) + " at " + std::to_string(f.point);
  }
  return text;
}

SearchResult search(const SearchOptions& options) {
  const std::vector<Fault> kinds = small_faults(options.hosts, options.all_kinds);
  SearchResult found;
  const auto run = [&](const std::vector<Fault>& faults) {
    const Result r = run_small(faults, options, nullptr);
    ++found.worlds;
    found.given_up += r.given_up ? 1 : 0;
    if (!r.violation.empty() && found.violations.size() < kViolationsMost) {
      found.violating.push_back(faults);
      found.violations.push_back(r.violation);
    }
    return r.points;
  };
  found.points = run_small({}, options, nullptr).points;
  for (std::uint64_t at = 1; at <= found.points; at += options.first_stride) {
    if (at / options.first_stride % options.parts != options.part) continue;
    for (Fault first : kinds) {
      first.point = at;
      const std::uint64_t until = run({first});
      for (std::uint64_t then = at; then <= until; then += options.second_stride) {
        for (Fault second : kinds) {
          second.point = then;
          run({first, second});
          if (found.violations.size() >= kViolationsMost) return found;
        }
      }
    }
  }
  return found;
}

}  // namespace crane::replica::sim
