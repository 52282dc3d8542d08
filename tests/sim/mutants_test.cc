// SPDX-License-Identifier: Apache-2.0
// GOAL    The checkers would notice if a rule of the protocol were missing.
// METHOD  Each mutant is the core with one rule removed (SCENARIOS-consensus.md names what then
//         breaks); seeded worlds run until a checker complains.  In a child process, because a
//         mutant may also trip an assertion of the core, which is the same verdict.
//         Mutants of membership run in worlds where members change all the time (--changes),
//         those of catch-up where rings are small (--laps).
// CHECKS  Each mutant is caught within kSeedsMax worlds; the unharmed core is not.
// REPLAY  crane-sim --mutant NAME [--changes | --laps] --seed N --trace

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "consensus/sim/cluster.h"
#include "dmt/base/log.h"

namespace {

namespace sim = crane::consensus::sim;
using crane::consensus::core::Mutant;

constexpr std::uint64_t kSeedsMax = 2000;

struct Verdict {
  std::uint64_t seed = 0;  // 0: not caught
  char text[160] = {};
};

// The first world that catches the mutant, as seen by a child process.
Verdict catch_mutant(Mutant mutant, std::uint64_t seeds) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    crane::set_message_fd(ends[1]);  // where an assertion speaks
    std::signal(SIGABRT, SIG_DFL);   // not Catch2's business
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Verdict v;
      v.seed = seed;
      sim::Options options;
      options.mutant = mutant;
      options.laps = mutant >= Mutant::kServeUncommitted;
      options.changes = mutant >= Mutant::kConfigBeforeStart && !options.laps;
      const sim::Outcome o = sim::run_seed(seed, options);
      if (o.ok()) continue;
      std::snprintf(v.text, sizeof v.text, "%s", o.violation.c_str());
      const ssize_t n = write(ends[1], &v, sizeof v);
      _exit(n == static_cast<ssize_t>(sizeof v) ? 1 : 2);
    }
    _exit(0);
  }
  close(ends[1]);
  Verdict v;
  char raw[sizeof v];
  std::size_t have = 0;
  ssize_t n = 0;
  while (have < sizeof raw && (n = read(ends[0], raw + have, sizeof raw - have)) > 0) {
    have += static_cast<std::size_t>(n);
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) {
    v.seed = ~std::uint64_t{0};
    std::snprintf(v.text, sizeof v.text, "%.*s", static_cast<int>(have), raw);
  } else if (WEXITSTATUS(status) == 1 && have == sizeof raw) {
    std::memcpy(&v, raw, sizeof v);
  }
  return v;
}

}  // namespace

TEST_CASE("mutants: each removed rule is noticed within a bounded number of worlds", "[sim]") {
  for (int i = 1; i <= static_cast<int>(Mutant::kFetchAnyView); ++i) {
    const auto mutant = static_cast<Mutant>(i);
    const Verdict v = catch_mutant(mutant, kSeedsMax);
    INFO("mutant " << sim::name(mutant));
    CHECK(v.seed != 0);
    if (v.seed == ~std::uint64_t{0}) {
      std::printf("mutant %-19s caught by an assertion: %s", sim::name(mutant), v.text);
    } else {
      std::printf("mutant %-19s caught by seed %llu: %s\n", sim::name(mutant),
                  static_cast<unsigned long long>(v.seed), v.text);
    }
  }
}
