// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/replica_worlds.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace crane::replica::sim {
namespace {

// A result that a child process hands to its parent.
template <typename Part>
std::vector<Part> in_processes(unsigned jobs,
                               void (*run)(unsigned job, unsigned jobs, Part& part,
                                           const void* with),
                               const void* with) {
  const std::size_t bytes = sizeof(Part) * jobs;
  void* shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* parts = static_cast<Part*>(shared);
  for (unsigned job = 0; job < jobs; ++job) new (&parts[job]) Part();
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (unsigned job = 0; job < jobs; ++job) {
    const pid_t child = jobs == 1 ? 0 : ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    run(job, jobs, parts[job], with);
    if (jobs != 1) ::_exit(0);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    well = ::waitpid(child, &status, 0) == child && status == 0 && well;
  }
  std::vector<Part> all(parts, parts + jobs);
  ::munmap(shared, bytes);
  if (!well) all.clear();
  return all;
}

struct Many {
  std::uint64_t first = 0, count = 0;
  Mutant mutant{};
};
struct ManyPart : Counts {
  struct {
    std::uint64_t seed;
    char text[800];
  } broken[kBrokenMost] = {};
  std::size_t listed = 0;
};

void run_part(unsigned job, unsigned jobs, ManyPart& part, const void* with) {
  const auto& many = *static_cast<const Many*>(with);
  Settings settings;
  settings.mutant = many.mutant;
  for (std::uint64_t n = job; n < many.count; n += jobs) {
    const Result r = run_replicas(many.first + n, settings);
    part.add({1, r.violation.empty() ? 0U : 1U, r.given_up ? 1U : 0U, r.answered, r.restarts,
              r.checkpoints, r.acceptors, r.views, r.received, r.adopted, r.lost, r.whole_ns});
    if (r.violation.empty() || part.listed == kBrokenMost) continue;
    auto& one = part.broken[part.listed++];
    one.seed = many.first + n;
    std::strncpy(one.text, r.violation.c_str(), sizeof one.text - 1);
  }
}

struct SearchPart {
  std::uint64_t points = 0, worlds = 0, given_up = 0, violations = 0;
};

void search_part(unsigned job, unsigned jobs, SearchPart& part, const void* with) {
  SearchOptions options = *static_cast<const SearchOptions*>(with);
  options.part = job;
  options.parts = jobs;
  const SearchResult found = search(options);
  part = {found.points, found.worlds, found.given_up, found.violations.size()};
  for (std::size_t i = 0; i < found.violations.size(); ++i) {
    std::printf("%s: %s\n", text_of(found.violating[i]).c_str(), found.violations[i].c_str());
  }
  std::fflush(stdout);
}

}  // namespace

void Counts::add(const Counts& more) {
  worlds += more.worlds;
  violations += more.violations;
  given_up += more.given_up;
  answered += more.answered;
  restarts += more.restarts;
  checkpoints += more.checkpoints;
  acceptors += more.acceptors;
  views += more.views;
  received += more.received;
  adopted += more.adopted;
  lost += more.lost;
  whole_most_ns = std::max(whole_most_ns, more.whole_most_ns);
}

Totals run_many(std::uint64_t first, std::uint64_t count, Mutant mutant, unsigned jobs) {
  const Many many{first, count, mutant};
  Totals t;
  const auto parts = in_processes<ManyPart>(jobs, run_part, &many);
  if (parts.empty()) {
    t.violations = 1;
    t.broken.push_back({first, "a process of the run died; --jobs 1 shows where"});
  }
  for (const ManyPart& p : parts) {
    t.add(p);
    for (std::size_t i = 0; i < p.listed; ++i) {
      t.broken.push_back({p.broken[i].seed, p.broken[i].text});
    }
  }
  std::sort(t.broken.begin(), t.broken.end(),
            [](const Broken& a, const Broken& b) { return a.seed < b.seed; });
  t.broken.resize(std::min(t.broken.size(), kBrokenMost));
  return t;
}

void print(const Totals& t) {
  const auto n = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
  for (const Broken& one : t.broken) std::printf("seed %llu: %s\n", n(one.seed), one.text.c_str());
  std::printf(
      "%llu worlds, %llu violations, %llu given up; %llu inputs answered, %llu nodes lost or "
      "restarted, %llu checkpoints, %llu replicas without a server, %llu views; clients with "
      "connections heard %llu bytes, %llu were taken over, %llu reset; whole again after %.1f s at "
      "most\n",
      n(t.worlds), n(t.violations), n(t.given_up), n(t.answered), n(t.restarts), n(t.checkpoints),
      n(t.acceptors), n(t.views), n(t.received), n(t.adopted), n(t.lost),
      static_cast<double>(t.whole_most_ns) / 1e9);
}

int search_all(const SearchOptions& options, unsigned jobs) {
  SearchPart sum;
  const auto parts = in_processes<SearchPart>(jobs, search_part, &options);
  for (const SearchPart& p : parts) {
    sum.points = p.points;
    sum.worlds += p.worlds;
    sum.given_up += p.given_up;
    sum.violations += p.violations;
  }
  std::printf("%llu moments, %llu worlds of one or two faults, %llu of them given up, %llu stuck\n",
              static_cast<unsigned long long>(sum.points),
              static_cast<unsigned long long>(sum.worlds),
              static_cast<unsigned long long>(sum.given_up),
              static_cast<unsigned long long>(sum.violations));
  return parts.empty() || sum.violations != 0 ? 1 : 0;
}

int play(const std::string& name, Mutant mutant, std::FILE* trace) {
  for (const Scene& scene : scenes()) {
    if (scene.name != name) continue;
    const Result r = run_scene(scene, mutant, trace);
    std::printf("%s: %s\n", scene.name,
                r.violation.empty() ? "every property held" : r.violation.c_str());
    return r.violation.empty() ? 0 : 1;
  }
  return 2;
}

std::uint64_t hunt(Mutant mutant, std::uint64_t count, std::string& violation) {
  Settings settings;
  settings.mutant = mutant;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    violation = run_replicas(seed, settings).violation;
    if (!violation.empty()) return seed;
  }
  return 0;
}

int list_mutants(std::uint64_t count) {
  int missed = 0;
  for (int i = 1; i < kMutants; ++i) {
    const auto mutant = static_cast<Mutant>(i);
    const auto scene = std::find_if(scenes().begin(), scenes().end(),
                                    [&](const Scene& one) { return one.without == mutant; });
    std::string violation, where;
    if (scene != scenes().end()) {
      violation = run_scene(*scene, mutant, nullptr).violation;
      where = scene->name;
    } else {
      where = std::to_string(hunt(mutant, count, violation));
    }
    missed += violation.empty() ? 1 : 0;
    std::printf(
        "| %s | %s | %s | %s |\n", rule(mutant), name(mutant), where.c_str(),
        violation.empty() ? "NOT NOTICED" : violation.substr(0, violation.find(':')).c_str());
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 1;
}

}  // namespace crane::replica::sim
