// SPDX-License-Identifier: Apache-2.0
// crane-sim: runs seeded worlds of the replicated log: many, one with its trace, or a long soak.
//
// Exit status: 0 every property held, 1 one broke (or a soak left a move untaken), 2 wrong usage.

#include <cstdio>
#include <string>
#include <vector>

#include "proxy/sim/group.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/version.h"
#include "tests/sim/replica_worlds.h"
#include "tests/sim/soak.h"

namespace {

namespace sim = crane::consensus::sim;
namespace core = crane::consensus::core;
namespace replicas = crane::replica::sim;
using core::Mutant;
using crane::proxy::sim::kConnectionWorlds;
using crane::setup::CommandLine;
using crane::setup::Word;

// From this number of seeds on, a soak must have taken every declared move once per two hundred
// worlds: a thousand times.
constexpr std::uint64_t kCoverageFrom = 200'000;

struct Arguments {
  sim::SoakOptions soak;
  std::string mutant = "none";
  std::string without;
  std::uint64_t until_ms = 0;
  bool trace = false;
  bool long_run = false;
  bool shrink = false;
  bool mutants = false;
  bool connections = false;
  bool replicas = false;
  bool search = false;
  bool hosts = false;
  bool all_kinds = false;
  bool clients = false;
  std::string scene;
  std::uint64_t stride = 1;
};

std::vector<Word> words_of(Arguments& a) {
  std::vector<std::string> mutants;
  for (int i = 0; i < core::kMutants; ++i) mutants.push_back(sim::name(static_cast<Mutant>(i)));
  for (int i = 1; i < kConnectionWorlds.mutants; ++i) {
    mutants.push_back(kConnectionWorlds.mutant_name(i));
  }
  for (int i = 1; i < crane::replica::kMutants; ++i) {
    mutants.push_back(replicas::name(static_cast<crane::replica::Mutant>(i)));
  }
  std::vector<std::string> scenes;
  for (const replicas::Scene& scene : replicas::scenes()) scenes.emplace_back(scene.name);
  sim::Options& world = a.soak.world;
  return {
      {"--seed,--first", &a.soak.first, "the (first) seed"},
      {"--count", &a.soak.count, "how many seeds (default 1)"},
      {"--jobs", &a.soak.jobs, "processes of a soak (default 2)"},
      {"--mutant", &a.mutant, "the mutant: remove one rule", {.choices = mutants}},
      {"--without", &a.without, "fault classes to leave out, by comma"},
      {"--salt", &world.salt, "vary the course of the same world"},
      {"--until", &a.until_ms, "end the faults after this many milliseconds"},
      {"--changes", Word::Flag{&world.changes}, "worlds in which members change all the time"},
      {"--laps",
       Word::Flag{&world.laps},
       "worlds with disks in which absent replicas are lapped",
       {.excludes = {"--changes"}}},
      {"--checkpoints",
       Word::Flag{&world.checkpoints},
       "worlds in which servers are restored from checkpoints",
       {.excludes = {"--changes", "--laps"}}},
      {"--analysis",
       Word::Flag{&world.analysis},
       "worlds in which members change, one of which is an analysis replica",
       {.excludes = {"--changes", "--laps", "--checkpoints"}}},
      {"--slow-disks",
       Word::Flag{&world.slow_disks},
       "worlds whose disks take longer than the first time-outs",
       {.excludes = {"--changes", "--laps", "--checkpoints", "--analysis"}}},
      {"--connections",
       Word::Flag{&a.connections},
       "worlds with clients whose connections outlive the leader (proxy/sim)",
       {.excludes = {"--changes", "--laps", "--checkpoints", "--analysis", "--slow-disks"}}},
      {"--replicas",
       Word::Flag{&a.replicas},
       "worlds of whole replicas: the decisions of nodes and crane-run (proxy/sim/replicas)",
       {.excludes = {"--changes", "--laps", "--checkpoints", "--analysis", "--slow-disks",
                     "--connections"}}},
      {"--search", Word::Flag{&a.search}, "with --replicas: every small world with two faults"},
      {"--hosts", Word::Flag{&a.hosts}, "with --search: a host for each replica"},
      {"--all-kinds", Word::Flag{&a.all_kinds},
       "with --search: also lost hosts, restarts and upgrades"},
      {"--clients", Word::Flag{&a.clients},
       "with --search: clients with connections talk meanwhile"},
      {"--scene", &a.scene, "with --replicas: the world with that name", {.choices = scenes}},
      {"--stride", &a.stride, "with --search: use every n-th moment only (default 1)"},
      {"--small", Word::Flag{&world.small}, "worlds of less time, faults closer together"},
      {"--trace", Word::Flag{&a.trace}, "print the trace of the world"},
      {"--all", Word::Flag{&world.all}, "with --trace: every operation"},
      {"--soak", Word::Flag{&a.long_run}, "progress, rates and coverage of declared moves"},
      {"--shrink", Word::Flag{&a.shrink},
       "find the fewest fault classes that still break the seed"},
      {"--mutants", Word::Flag{&a.mutants}, "the table of mutants and the seeds that catch them"},
  };
}

int list_mutants(std::uint64_t count, bool small) {
  int missed = 0;
  for (int i = 1; i < core::kMutants; ++i) {
    sim::Options options = sim::options_for(static_cast<Mutant>(i));
    options.small = small;
    const sim::Verdict v = sim::hunt(1, count, options);
    missed += v.caught() ? 0 : 1;
    std::printf("| %s | %s | %s | %llu | %s |\n", sim::scenario(options.mutant),
                sim::rule(options.mutant), sim::name(options.mutant),
                static_cast<unsigned long long>(v.seed),
                v.caught() ? v.property().c_str() : "NOT CAUGHT");
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

int list_mutants_of(const sim::Options& world, std::uint64_t count) {
  int missed = 0;
  for (int i = 1; i < world.application->mutants; ++i) {
    sim::Options options = world;
    options.application_mutant = i;
    const sim::Verdict v = sim::hunt(1, count, options);
    missed += v.caught() ? 0 : 1;
    std::printf("| %s | %llu | %s |\n", world.application->mutant_name(i),
                static_cast<unsigned long long>(v.seed),
                v.caught() ? v.property().c_str() : "NOT CAUGHT");
  }
  return missed == 0 ? 0 : 1;
}

int shrink(const Arguments& a) {
  const sim::Verdict v = sim::run_in_child(a.soak.first, a.soak.world);
  if (!v.caught()) {
    std::printf("seed %llu breaks nothing\n", static_cast<unsigned long long>(a.soak.first));
    return 0;
  }
  std::printf("%s\n", v.text.c_str());
  std::string without;
  const sim::Options least = sim::shrink(a.soak.first, a.soak.world, without);
  std::printf("least: %s\n", replay(a.soak.first, least).c_str());
  return 1;
}

int trace_seeds(const Arguments& a) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // survives an abort
  sim::Options options = a.soak.world;
  options.trace = stdout;
  bool ok = true;
  for (std::uint64_t i = 0; i < a.soak.count; ++i) {
    const sim::Outcome o = run_seed(a.soak.first + i, options);
    ok = ok && o.ok();
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(o.seed),
                o.ok() ? "every property held" : o.violation.c_str());
  }
  return ok ? 0 : 1;
}

int run_replica_worlds(const Arguments& a) {
  auto mutant = crane::replica::Mutant::kNone;
  for (int i = 1; i < crane::replica::kMutants; ++i) {
    const auto one = static_cast<crane::replica::Mutant>(i);
    if (a.mutant == replicas::name(one)) mutant = one;
  }
  if (a.mutants) return replicas::list_mutants(std::max<std::uint64_t>(a.soak.count, 400'000));
  if (a.search) {
    replicas::SearchOptions options;
    options.mutant = mutant;
    options.hosts = a.hosts;
    options.all_kinds = a.all_kinds;
    options.clients = a.clients;
    options.first_stride = options.second_stride = std::max<std::uint64_t>(a.stride, 1);
    return replicas::search_all(options, a.soak.jobs);
  }
  if (!a.scene.empty()) return replicas::play(a.scene, mutant, a.trace ? stdout : nullptr);
  if (a.trace) {
    replicas::Settings settings;
    settings.mutant = mutant;
    settings.trace = stdout;
    const replicas::Result r = replicas::run_replicas(a.soak.first, settings);
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(a.soak.first),
                r.violation.empty() ? "every property held" : r.violation.c_str());
    return r.violation.empty() ? 0 : 1;
  }
  const replicas::Totals t = replicas::run_many(a.soak.first, a.soak.count, mutant, a.soak.jobs);
  replicas::print(t);
  return t.violations == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  a.soak.count = 1;
  const crane::setup::Program program{
      {"crane-sim", "Runs seeded worlds of the replicated log and checks its properties.",
       words_of(a)},
      crane::setup::version_text(),
      ""};
  const auto complain = [](const std::string& mistake) {
    std::fprintf(stderr, "crane-sim: %s; see crane-sim --help\n", mistake.c_str());
  };
  if (const auto status = CommandLine(program).status_after(argc, argv, 100, complain)) {
    return *status;
  }
  sim::Faults known;
  if (!known.without(a.without)) {
    std::fprintf(stderr,
                 "crane-sim: --without %s: no such fault class; there are:", a.without.c_str());
    for (std::size_t i = 0; sim::Faults::fault_class(i) != nullptr; ++i) {
      std::fprintf(stderr, " %s", sim::Faults::fault_class(i));
    }
    std::fputc('\n', stderr);
    return 2;
  }
  for (int i = 0; i < core::kMutants; ++i) {
    if (a.mutant == sim::name(static_cast<Mutant>(i))) a.soak.world.mutant = static_cast<Mutant>(i);
  }
  for (int i = 1; i < kConnectionWorlds.mutants; ++i) {
    if (a.mutant == kConnectionWorlds.mutant_name(i)) {
      a.soak.world.application_mutant = i;
      a.connections = true;
    }
  }
  for (int i = 1; i < crane::replica::kMutants; ++i) {
    a.replicas = a.replicas || a.mutant == replicas::name(static_cast<crane::replica::Mutant>(i));
  }
  if (a.replicas) return run_replica_worlds(a);
  if (a.connections) a.soak.world.application = &kConnectionWorlds;
  a.soak.world.without = a.without;
  a.soak.world.until_ns = a.until_ms * 1'000'000;
  if (a.mutants && a.connections) {
    return list_mutants_of(a.soak.world, std::max<std::uint64_t>(a.soak.count, 100'000));
  }
  if (a.mutants)
    return list_mutants(std::max<std::uint64_t>(a.soak.count, 100'000), a.soak.world.small);
  if (a.shrink) return shrink(a);
  if (a.trace) return trace_seeds(a);
  a.soak.progress = a.long_run;
  const sim::SoakTotals totals = soak(a.soak);
  if (!a.long_run) {
    std::printf("%llu seeds, %llu violations, %.1f seeds/s\n",
                static_cast<unsigned long long>(totals.done),
                static_cast<unsigned long long>(totals.violations),
                static_cast<double>(totals.done) / totals.seconds);
    return totals.violations == 0 ? 0 : 1;
  }
  const unsigned rare = report(totals);
  if (rare > 0) std::printf("%u declared moves are taken less than once per 200 worlds\n", rare);
  return totals.violations > 0 || (rare > 0 && totals.done >= kCoverageFrom) ? 1 : 0;
}
