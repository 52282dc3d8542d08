// SPDX-License-Identifier: Apache-2.0
#pragma once
// Worlds with a name: the faults found in use, and each kind of fault once.  A scene breaks a
// property without its rule.
//
// Threads: one.

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {

struct Scene {
  const char* name;
  const char* what;
  Settings settings;
  std::vector<Fault> faults;
  Mutant without;  // the rule that the scene needs; kNone: no mutant removes it
};
std::span<const Scene> scenes();
Result run_scene(const Scene& scene, Mutant mutant, std::FILE* trace);

}  // namespace crane::replica::sim
