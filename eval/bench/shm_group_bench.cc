// SPDX-License-Identifier: Apache-2.0
// The consensus really runs with many replicas on this machine, over shared memory.
//
//   bench-shm-group [--replicas N,N,...] [--payload BYTES,...] [--entries N] [--json FILE]
//
// Per size: a group starts, its leader commits N entries, all replicas apply the same log; the
// leader is killed, the others elect one that commits N more; the killed one recovers and catches
// up; all hashes agree.  Exit status 1 when one of these did not happen.  `--replicas 1,3,5
// --payload 64,1024,8192 --entries 20000` is Mu's figure 3: replication latency by payload.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "eval/bench/shm_group.h"

namespace {

using crane::eval::ShmGroup;
using crane::eval::ShmGroupOptions;

constexpr int kTimeoutMs = 60'000;

double seconds() { return static_cast<double>(crane::monotonic_ns()) / 1e9; }

double percentile_us(const std::vector<std::uint64_t>& sorted, double p) {
  if (sorted.empty()) return 0;
  return static_cast<double>(
             sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))]) /
         1e3;
}

// One size; an empty object when something did not happen, which is printed.
nlohmann::json run(std::uint8_t replicas, std::size_t bytes, std::uint64_t entries) {
  const auto failed = [&](const char* what) {
    std::printf("%8d %7zu  FAILED: %s\n", replicas, bytes, what);
    return nlohmann::json();
  };
  ShmGroupOptions options;
  options.replicas = replicas;
  options.payload_bytes = bytes;
  const double begin = seconds();
  ShmGroup group(options);
  const int first = group.wait_for_leader(kTimeoutMs);
  if (first < 0) return failed("no leader");
  const double formed = seconds();
  if (!group.propose(first, entries, kTimeoutMs)) return failed("the first leader's entries");
  if (!group.wait_all_applied(kTimeoutMs) || !group.all_agree()) return failed("the same log");
  const auto latencies = group.latencies_ns();
  const ShmGroup::Memory memory = group.memory();
  double fail_over_ms = 0;
  int leader = first;
  if (replicas > 1) {
    group.kill(first);
    const double killed = seconds();
    leader = group.wait_for_leader(kTimeoutMs);
    if (leader < 0) return failed("no second leader");
    fail_over_ms = 1e3 * (seconds() - killed);
    if (!group.propose(leader, entries, kTimeoutMs)) return failed("the second leader's entries");
    group.start(first);
    if (!group.wait_all_applied(kTimeoutMs) || !group.all_agree()) {
      return failed("the same log after the leader was killed");
    }
  }
  const auto views = group.view_counter(leader);
  const double p50 = percentile_us(latencies, 0.5), p99 = percentile_us(latencies, 0.99);
  const double p999 = percentile_us(latencies, 0.999);
  std::printf("%8d %7zu %9.2f %9.2f %9.2f %9.2f %9.1f %9.1f %6lu %12lu %11lu\n", replicas, bytes,
              formed - begin, p50, p99, p999, fail_over_ms,
              static_cast<double>(group.processor_us()) / 1e6, views, memory.private_kib / replicas,
              memory.shared_kib / replicas);
  std::fflush(stdout);
  return {{"replicas", replicas},
          {"payload_bytes", bytes},
          {"p50_us", p50},
          {"p99_us", p99},
          {"p999_us", p999},
          {"forming_s", formed - begin},
          {"fail_over_ms", fail_over_ms},
          {"views", views},
          {"private_kib_per_replica", memory.private_kib / replicas},
          {"shared_kib_per_replica", memory.shared_kib / replicas}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<unsigned> sizes = {3, 5, 7, 9, 33, 65, 105};
  std::vector<std::size_t> payloads = {64};
  std::uint64_t entries = 2000;
  std::string file;
  CLI::App app("The consensus with many replicas over shared memory");
  app.add_option("--replicas", sizes)
      ->delimiter(',')
      ->check(CLI::Range(1, int{crane::kReplicasMax}));
  app.add_option("--payload", payloads, "bytes of an entry")->delimiter(',');
  app.add_option("--entries", entries, "of each leader");
  app.add_option("--json", file, "where to put the rows");
  CLI11_PARSE(app, argc, argv);
  std::printf(
      "%8s %7s %9s %9s %9s %9s %9s %9s %6s %12s %11s\n"
      "%8s %7s %9s %9s %9s %9s %9s %9s %6s %12s %11s\n",
      "replicas", "payload", "forming", "commit", "commit", "commit", "new", "processor", "views",
      "private/rep", "shared/rep", "", "B", "s", "p50 us", "p99 us", "p99.9 us", "leader ms", "s",
      "", "KiB", "KiB");
  nlohmann::json rows = nlohmann::json::array();
  bool good = true;
  for (const unsigned n : sizes) {
    for (const std::size_t bytes : payloads) {
      rows.push_back(run(static_cast<std::uint8_t>(n), bytes, entries));
      good = good && !rows.back().is_null();
    }
  }
  if (!file.empty() && !(std::ofstream(file) << rows.dump(1) << '\n')) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    return 1;
  }
  return good ? 0 : 1;
}
