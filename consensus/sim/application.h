// SPDX-License-Identifier: Apache-2.0
#pragma once
// Most worlds have a client that proposes numbers.  Other worlds run an application on their cores.
// The code of an application is in a folder above this one (proxy/sim), which this folder does not
// know.
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

// Counters of an application in a world, for tests that something happened.
using ApplicationCounts = std::array<std::uint64_t, 8>;

// The calls, except begin() and resumed(), come from within the steps of a core: they plan events,
// and propose, end and stop nothing themselves.
class Application {
 public:
  virtual ~Application() = default;
  virtual void begin() = 0;               // all cores have started
  virtual void started(unsigned id) = 0;  // a process of that replica started
  virtual void ended(unsigned id) = 0;    // it died
  virtual void resumed(unsigned id) = 0;  // it was stopped; called before it does anything else
  virtual void delivered(unsigned id, const core::Entry& entry) = 0;
  virtual void leads(unsigned id, View view, bool leads) = 0;
  virtual void faults_end() = 0;
  virtual std::string at_end() = 0;  // a complaint, or ""
  virtual ApplicationCounts counts() const = 0;
};

// A kind of worlds: their faults, and the application that runs in them.
struct ApplicationKind {
  const char* flag;  // of crane-sim
  Faults (*draw)(std::uint64_t seed);
  // `mutant`: number of the application's rule that is removed; 0: none.
  std::unique_ptr<Application> (*make)(Cluster& cluster, int mutant);
  const char* (*mutant_name)(int mutant);
  int mutants;  // including none
};

}  // namespace crane::consensus::sim
