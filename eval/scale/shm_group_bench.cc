// SPDX-License-Identifier: Apache-2.0
// The consensus really runs with 3..105 replicas on this machine, over shared memory.
//
//   bench-shm-group [--replicas N,N,...] [--entries N] [--json FILE]
//
// Per size: a group starts, its leader commits N entries of 64 bytes, all replicas apply the same
// log; the leader is killed, the others elect one that commits N more; the killed one recovers
// and catches up; all hashes agree.  Exit status 1 when one of these did not happen.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "eval/scale/shm_group.h"

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
nlohmann::json run(std::uint8_t replicas, std::uint64_t entries) {
  const auto failed = [&](const char* what) {
    std::printf("%8d  FAILED: %s\n", replicas, what);
    return nlohmann::json();
  };
  ShmGroupOptions options;
  options.replicas = replicas;
  const double begin = seconds();
  ShmGroup group(options);
  const int first = group.wait_for_leader(kTimeoutMs);
  if (first < 0) return failed("no leader");
  const double formed = seconds();
  if (!group.propose(first, entries, kTimeoutMs)) return failed("the first leader's entries");
  if (!group.wait_all_applied(kTimeoutMs) || !group.all_agree()) return failed("the same log");
  const auto latencies = group.latencies_ns();
  const ShmGroup::Memory memory = group.memory();
  group.kill(first);
  const double killed = seconds();
  const int second = group.wait_for_leader(kTimeoutMs);
  if (second < 0) return failed("no second leader");
  const double elected = seconds();
  if (!group.propose(second, entries, kTimeoutMs)) return failed("the second leader's entries");
  group.start(first);
  if (!group.wait_all_applied(kTimeoutMs) || !group.all_agree()) {
    return failed("the same log after the leader was killed");
  }
  const auto views = group.view_counter(second);
  std::printf("%8d %9.2f %9.2f %9.2f %9.1f %9.1f %6lu %12lu %11lu\n", replicas, formed - begin,
              percentile_us(latencies, 0.5), percentile_us(latencies, 0.99),
              1e3 * (elected - killed), static_cast<double>(group.processor_us()) / 1e6, views,
              memory.private_kib / replicas, memory.shared_kib / replicas);
  std::fflush(stdout);
  return {{"replicas", replicas},
          {"p50_us", percentile_us(latencies, 0.5)},
          {"p99_us", percentile_us(latencies, 0.99)},
          {"forming_s", formed - begin},
          {"fail_over_ms", 1e3 * (elected - killed)},
          {"views", views},
          {"private_kib_per_replica", memory.private_kib / replicas},
          {"shared_kib_per_replica", memory.shared_kib / replicas}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string sizes = "3,5,7,9,33,65,105";
  std::uint64_t entries = 2000;
  const char* file = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--replicas") == 0) sizes = argv[i + 1];
    if (std::strcmp(argv[i], "--entries") == 0) entries = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--json") == 0) file = argv[i + 1];
  }
  std::printf("%8s %9s %9s %9s %9s %9s %6s %12s %11s\n%8s %9s %9s %9s %9s %9s %6s %12s %11s\n",
              "replicas", "forming", "commit", "commit", "new", "processor", "views", "private/rep",
              "shared/rep", "", "s", "p50 us", "p99 us", "leader ms", "s", "", "KiB", "KiB");
  nlohmann::json rows = nlohmann::json::array();
  bool good = true;
  for (const char* at = sizes.c_str(); *at != '\0';) {
    char* end = nullptr;
    const auto n = std::strtoul(at, &end, 10);
    if (end == at || n < 1 || n > crane::kReplicasMax) {
      std::fprintf(stderr, "--replicas: a list of numbers from 1 to %d, not %s\n",
                   crane::kReplicasMax, sizes.c_str());
      return 2;
    }
    at = *end == ',' ? end + 1 : end;
    rows.push_back(run(static_cast<std::uint8_t>(n), entries));
    good = good && !rows.back().is_null();
  }
  if (file != nullptr) {
    std::FILE* const out = std::fopen(file, "w");
    if (out == nullptr) {
      std::fprintf(stderr, "cannot write %s\n", file);
      return 1;
    }
    std::fprintf(out, "%s\n", rows.dump(1).c_str());
    std::fclose(out);
  }
  return good ? 0 : 1;
}
