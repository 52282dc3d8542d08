// SPDX-License-Identifier: Apache-2.0
#pragma once
// Most worlds have a client that proposes numbers.  Others run an application on their cores.  Its
// code lives in a folder above this one, which knows nothing of it (proxy/sim).
//
// Threads: one.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "consensus/core/step.h"
#include "consensus/sim/faults.h"

namespace crane::consensus::sim {

class Cluster;

// What an application counts in a world, for tests that something happened.
using ApplicationCounts = std::array<std::uint64_t, 8>;

// Calls come from within the steps of a core, but for begin() and resumed(): they plan events, and
// propose, end and stop nothing themselves.
class Application {
 public:
  virtual ~Application() = default;
  virtual void begin() = 0;               // all cores have started
  virtual void started(unsigned id) = 0;  // a process of that replica
  virtual void ended(unsigned id) = 0;    // it died
  virtual void resumed(unsigned id) = 0;  // it was stopped; before anything else that it does
  virtual void delivered(unsigned id, const core::Entry& entry) = 0;
  virtual void leads(unsigned id, View view, bool leads) = 0;
  virtual void faults_end() = 0;
  virtual std::string at_end() = 0;  // a complaint, or ""
  virtual ApplicationCounts counts() const = 0;
};

// A kind of worlds: their faults, and what runs in them.
struct ApplicationKind {
  const char* flag;  // of crane-sim
  Faults (*draw)(std::uint64_t seed);
  // `mutant`: one of its own rules removed; 0: none.
  std::unique_ptr<Application> (*make)(Cluster& cluster, int mutant);
  const char* (*mutant_name)(int mutant);
  int mutants;  // and none
};

}  // namespace crane::consensus::sim
