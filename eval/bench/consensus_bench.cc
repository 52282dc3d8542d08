// SPDX-License-Identifier: Apache-2.0
// How long the leader takes from propose to on_committed over fabric/shm, for 1, 3 and 5 replicas
// in processes of their own (Mu figure 3: replication latency by payload size).
//
//   bench-consensus [--rounds N] [--pause-us P]
//
// Columns: replicas, payload bytes, wake (1: doorbells are rung after each entry, as at a low rate,
// 0: after 64 entries, as under load), the latency in ns at the 50th, 99th and 99.9th percentile,
// its maximum, and the cost of flush_doorbells(), which is not on that path.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/clock.h"

namespace {

using crane::consensus::Consensus;

std::uint64_t now_ns() { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

struct Replica {
  std::unique_ptr<Consensus> consensus;
  std::uint64_t committed = 0;
  bool leads = false;

  Replica(const std::string& directory, std::uint8_t self, std::uint8_t replicas) {
    crane::consensus::Options o;
    o.directory = directory;
    o.self = crane::ReplicaId{self};
    o.replicas = replicas;
    o.log_id = 99;
    o.callbacks.on_committed = [this](const auto& e) { committed = value(e.at.index); };
    o.callbacks.on_role = [this](auto role, auto, auto) {
      leads = role == crane::consensus::Role::kLeader;
    };
    auto opened = Consensus::open(std::move(o));
    if (!opened) {
      std::fprintf(stderr, "cannot open replica %d: %s\n", self, opened.error().what);
      ::_exit(1);
    }
    consensus = std::move(opened).value();
  }
  void iterate(std::uint64_t wait_max_ns) {
    const std::uint64_t deadline = consensus->poll(now_ns());
    consensus->flush_doorbells();
    const std::uint64_t now = now_ns();
    const std::uint64_t wait = std::min(deadline > now ? deadline - now : 0, wait_max_ns);
    const timespec t{0, static_cast<long>(std::min<std::uint64_t>(wait, 999'999'999))};
    pollfd fd{consensus->event_fd(), POLLIN, 0};
    ::ppoll(&fd, 1, &t, nullptr);
  }
};

std::uint64_t percentile(const std::vector<std::uint64_t>& sorted, double p) {
  const auto at = static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1));
  return sorted[at];
}

void measure(Replica& r, int replicas, std::size_t bytes, bool wake, int rounds, int pause_us) {
  const std::vector<std::byte> payload(bytes, std::byte{42});
  std::vector<std::uint64_t> latency;
  std::uint64_t flush_ns = 0;
  std::uint64_t flushes = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t from = now_ns();
    const auto index = r.consensus->propose(1, from, 0, payload);
    if (!index.ok()) {
      r.iterate(1'000'000);
      continue;
    }
    do {
      r.consensus->poll(now_ns());
    } while (r.committed < value(index.value()) && r.leads);
    const std::uint64_t done = now_ns();
    latency.push_back(done - from);
    if (wake || i % 64 == 63) {
      r.consensus->flush_doorbells();
      flush_ns += now_ns() - done;
      ++flushes;
      if (pause_us > 0) ::usleep(static_cast<useconds_t>(pause_us));
    }
  }
  if (latency.empty()) return;
  std::sort(latency.begin(), latency.end());
  std::printf("%8d %8zu %5d %8lu %8lu %8lu %9lu   flush %6lu ns   %zu of %d\n", replicas, bytes,
              wake ? 1 : 0, percentile(latency, 0.5), percentile(latency, 0.99),
              percentile(latency, 0.999), latency.back(), flushes > 0 ? flush_ns / flushes : 0,
              latency.size(), rounds);
  std::fflush(stdout);
}

void run_group(std::uint8_t replicas, int rounds, int pause_us) {
  std::string directory = "/dev/shm/crane-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return;
  std::vector<pid_t> followers;
  for (std::uint8_t i = 1; i < replicas; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      Replica follower(directory, i, replicas);
      while (::getppid() != 1) {
        follower.iterate(100'000'000);
        if (follower.leads) follower.consensus->abdicate("replica 0 is measured");
      }
      ::_exit(0);
    }
    followers.push_back(pid);
  }
  Replica leader(directory, 0, replicas);
  const std::uint64_t give_up = now_ns() + 5'000'000'000;
  while (!leader.leads && now_ns() < give_up) leader.iterate(1'000'000);
  if (leader.leads) {
    for (const std::size_t bytes : {64, 1024, 8192}) {
      for (const bool wake : {false, true}) {
        measure(leader, replicas, bytes, wake, rounds, pause_us);
      }
    }
  } else {
    std::printf("%8d replica 0 did not become leader\n", replicas);
  }
  for (const pid_t pid : followers) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  leader.consensus.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 20000;
  int pause_us = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--pause-us") == 0) pause_us = std::atoi(argv[i + 1]);
  }
  std::printf("propose -> committed over shared memory, ns\n%8s %8s %5s %8s %8s %8s %9s\n",
              "replicas", "bytes", "wake", "p50", "p99", "p99.9", "max");
  for (const int replicas : {1, 3, 5}) {
    run_group(static_cast<std::uint8_t>(replicas), rounds, pause_us);
  }
  return 0;
}
