// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every small world: three replicas, a ring that wraps, and each pair of faults at each pair of
// moments, between any two actions and at each moment of time.  A world that is found stuck is
// stuck whatever the timers do: nothing is in progress, and a client waits.
//
// The complete search (stride 1) has the kinds of fault of one machine whose server stays.  Lost
// hosts, restarts and upgrades are added by `all_kinds`, which tests run with a greater stride.
//
// Threads: one; parts of the search are independent.

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {

struct SearchOptions {
  Mutant mutant = Mutant::kNone;
  bool hosts = false;  // each replica has its own host
  // The faults include restarts and upgrades, and with `hosts` lost hosts.
  bool all_kinds = false;
  // Clients with connections talk meanwhile: more moments, because actions for them count.
  bool clients = false;
  // Step between the moments of the first fault, and of the second; 1: all moments.
  std::uint64_t first_stride = 1, second_stride = 1;
  unsigned part = 0, parts = 1;  // of the first fault's moments
};
struct SearchResult {
  std::uint64_t points = 0;  // moments of the world without a fault
  std::uint64_t worlds = 0, given_up = 0;
  std::vector<std::vector<Fault>> violating;  // only a few
  std::vector<std::string> violations;
};
SearchResult search(const SearchOptions& options);

// Runs one world of search(), with these faults.
Result run_small(std::vector<Fault> faults, const SearchOptions& options, std::FILE* trace);
// "kill r1 at 120, stop r0 at 131": the faults of run_small().
std::string text_of(const std::vector<Fault>& faults);

}  // namespace crane::replica::sim
