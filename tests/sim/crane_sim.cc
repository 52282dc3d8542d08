// SPDX-License-Identifier: Apache-2.0
// crane-sim: runs seeded worlds of the replicated log, many or one with its trace.
//
// crane-sim [--seed FIRST] [--count N] [--mutant NAME] [--changes] [--trace]
//   --changes  worlds in which members change all the time

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "consensus/sim/cluster.h"

namespace {

namespace sim = crane::consensus::sim;
using crane::consensus::core::Mutant;

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  sim::Options options;
};

int usage() {
  std::fprintf(stderr,
               "usage: crane-sim [--seed FIRST] [--count N] [--mutant NAME] [--changes | --laps] "
               "[--trace]\n");
  for (int i = 1; i <= static_cast<int>(Mutant::kFetchAnyView); ++i) {
    std::fprintf(stderr, "  mutant %s\n", sim::name(static_cast<Mutant>(i)));
  }
  return 2;
}

bool parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--trace") == 0) {
      a.options.trace = stdout;
    } else if (std::strcmp(argv[i], "--changes") == 0) {
      a.options.changes = true;
    } else if (std::strcmp(argv[i], "--laps") == 0) {
      a.options.laps = true;
    } else if (std::strcmp(argv[i], "--seed") == 0 && more) {
      a.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--count") == 0 && more) {
      a.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--mutant") == 0 && more) {
      const char* wanted = argv[++i];
      bool found = false;
      for (int m = 0; m <= static_cast<int>(Mutant::kFetchAnyView); ++m) {
        if (std::strcmp(sim::name(static_cast<Mutant>(m)), wanted) != 0) continue;
        a.options.mutant = static_cast<Mutant>(m);
        found = true;
      }
      if (!found) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, a)) return usage();
  if (a.options.trace != nullptr) std::setvbuf(stdout, nullptr, _IOLBF, 0);  // survives an abort
  std::uint64_t failed = 0;
  std::uint64_t committed = 0;
  std::uint64_t views = 0;
  std::uint64_t events = 0;
  std::uint64_t changes = 0;
  std::uint64_t leaders_removed = 0;
  std::uint64_t returns = 0;
  std::uint64_t fetches = 0;
  std::uint64_t given_up = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = a.seed; seed < a.seed + a.count; ++seed) {
    const sim::Outcome o = sim::run_seed(seed, a.options);
    committed += o.committed;
    views += o.views;
    events += o.events;
    changes += o.changes;
    leaders_removed += o.removals_of_leaders;
    returns += o.returns;
    fetches += o.fetches;
    given_up += o.given_up ? 1 : 0;
    if (o.ok()) continue;
    ++failed;
    std::printf("seed %llu: %s\n  replay: crane-sim --seed %llu --mutant %s --trace\n",
                static_cast<unsigned long long>(seed), o.violation.c_str(),
                static_cast<unsigned long long>(seed), sim::name(a.options.mutant));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%llu seeds, %llu failed, %llu entries, %llu views, %llu events, %.1f seeds/s\n",
              static_cast<unsigned long long>(a.count), static_cast<unsigned long long>(failed),
              static_cast<unsigned long long>(committed), static_cast<unsigned long long>(views),
              static_cast<unsigned long long>(events), static_cast<double>(a.count) / seconds);
  std::printf(
      "%llu changes of members, %llu removed the leader, %llu gave a lost vote back, "
      "%llu groups beyond help, stores read for peers %llu times\n",
      static_cast<unsigned long long>(changes), static_cast<unsigned long long>(leaders_removed),
      static_cast<unsigned long long>(returns), static_cast<unsigned long long>(given_up),
      static_cast<unsigned long long>(fetches));
  return failed == 0 ? 0 : 1;
}
