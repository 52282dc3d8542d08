// SPDX-License-Identifier: Apache-2.0
#include "eval/bench/shm_group.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "consensus/consensus.h"
#include "dmt/base/assert.h"
#include "dmt/base/clock.h"
#include "dmt/base/crc.h"

namespace crane::eval {
namespace {

using consensus::Consensus;
using consensus::EntryView;
using consensus::Role;

constexpr std::uint8_t kInput = 1;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::size_t kLatenciesMax = 1U << 16;
constexpr std::size_t kHashes = 4096;  // [index % kHashes]

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

bool until(const std::function<bool()>& done, int timeout_ms) {
  const std::uint64_t give_up = monotonic_ns() + static_cast<std::uint64_t>(timeout_ms) * kMs;
  while (!done()) {
    if (monotonic_ns() > give_up) return false;
    ::poll(nullptr, 0, 1);  // leaves the processor to the replicas
  }
  return true;
}

void wait_for(Consensus& c, std::uint64_t deadline_ns) {
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t wait = deadline_ns > now ? std::min(deadline_ns - now, 1000 * kMs) : 0;
  const timespec t{static_cast<time_t>(wait / 1'000'000'000),
                   static_cast<long>(wait % 1'000'000'000)};
  pollfd fd{c.event_fd(), POLLIN, 0};
  ::ppoll(&fd, 1, &t, nullptr);
}

}  // namespace

// Written by the replica named, read by the parent; `order` the other way round.
struct ShmGroup::Shared {
  struct alignas(64) Replica {
    std::atomic<std::uint64_t> applied;
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint64_t> view;
    std::atomic<std::uint32_t> role;
    std::atomic<std::uint32_t> broken;    // gaps and fatal ends
    std::atomic<std::uint64_t> order;     // entries to propose; set by the parent
    std::atomic<std::uint64_t> proposed;  // entries of `order` that are committed
    std::atomic<std::uint64_t> hashes[kHashes];
  };
  Replica replicas[kReplicasMax];
  std::atomic<std::uint64_t> latencies;
  std::atomic<std::uint64_t> latency_ns[kLatenciesMax];
};

ShmGroup::ShmGroup(const ShmGroupOptions& options) : options_(options), pids_(options.replicas) {
  directory_ = "/dev/shm/crane-group-XXXXXX";
  CRANE_ASSERT(::mkdtemp(directory_.data()) != nullptr);
  void* const at =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CRANE_ASSERT(at != MAP_FAILED);
  shared_ = static_cast<Shared*>(at);
  for (int i = 0; i < options.replicas; ++i) start(i);
}

ShmGroup::~ShmGroup() {
  for (int i = 0; i < options_.replicas; ++i) kill(i);
  ::munmap(shared_, sizeof(Shared));
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void ShmGroup::start(int replica) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  CRANE_ASSERT(pid >= 0);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) run(static_cast<std::uint8_t>(replica));
    ::_exit(1);
  }
  pids_[static_cast<std::size_t>(replica)] = pid;
}

void ShmGroup::kill(int replica) {
  pid_t& pid = pids_[static_cast<std::size_t>(replica)];
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = 0;
  shared_->replicas[replica].role = static_cast<std::uint32_t>(Role::kFollower);
}

// A replica's process.
void ShmGroup::run(std::uint8_t self) {
  Shared::Replica& r = shared_->replicas[self];
  consensus::Options o;
  o.directory = directory_;
  o.self = ReplicaId{self};
  o.replicas = options_.replicas;
  o.ring_bytes = options_.ring_bytes;
  o.log_id = 4711;
  o.callbacks.on_committed = [&r](const EntryView& e) {
    const std::uint64_t index = value(e.at.index);
    if (index <= r.applied) return;  // started again: what it applied is in shared memory still
    if (r.applied != 0 && index != r.applied + 1) ++r.broken;
    const std::uint64_t words[] = {index, value(e.at.view), e.type, r.hash};
    r.hash = crc64(e.payload.data(), e.payload.size(), crc64(words, sizeof words));
    r.hashes[index % kHashes] = r.hash.load();
    r.applied = index;
  };
  o.callbacks.on_role = [&r](Role role, View view, ReplicaId) {
    r.view = value(view);
    r.role = static_cast<std::uint32_t>(role);
  };
  o.callbacks.on_fatal = [&r](const char*) { ++r.broken; };
  auto opened = Consensus::open(std::move(o));
  if (!opened) ::_exit(3);
  Consensus& c = *opened.value();
  std::vector<std::byte> payload(options_.payload_bytes, std::byte{7});
  for (;;) {
    std::uint64_t deadline = c.poll(monotonic_ns());
    if (r.proposed < r.order && c.status().role == Role::kLeader) {
      const std::uint64_t n = r.proposed;
      std::memcpy(payload.data(), &n, std::min(payload.size(), sizeof n));
      const std::uint64_t from = monotonic_ns();
      const auto index = c.propose(kInput, from, 0, payload);
      while (index.ok() && r.applied < value(index.value()) && c.status().role == Role::kLeader) {
        deadline = c.poll(monotonic_ns());
      }
      if (index.ok() && r.applied >= value(index.value())) {
        const std::uint64_t at = shared_->latencies;
        shared_->latency_ns[at % kLatenciesMax] = monotonic_ns() - from;
        shared_->latencies = at + 1;
        ++r.proposed;
      }
      if (index.ok()) deadline = 0;
    }
    c.flush_doorbells();
    wait_for(c, r.proposed < r.order ? std::min(deadline, monotonic_ns() + kMs) : deadline);
  }
}

int ShmGroup::wait_for_leader(int timeout_ms) {
  int found = -1;
  until(
      [&] {
        std::uint64_t view = 0;
        for (int i = 0; i < options_.replicas; ++i) {
          const Shared::Replica& r = shared_->replicas[i];
          if (!alive(i) || r.role != static_cast<std::uint32_t>(Role::kLeader)) continue;
          if (r.view >= view) found = i;
          view = std::max(view, r.view.load());
        }
        return found >= 0;
      },
      timeout_ms);
  return found;
}

bool ShmGroup::propose(int leader, std::uint64_t count, int timeout_ms) {
  Shared::Replica& r = shared_->replicas[leader];
  r.order += count;  // it looks within a heartbeat
  return until(
             [&] {
               return r.proposed >= r.order || r.role != static_cast<std::uint32_t>(Role::kLeader);
             },
             timeout_ms) &&
         r.proposed >= r.order;
}

std::uint64_t ShmGroup::applied(int replica) const { return shared_->replicas[replica].applied; }

std::uint64_t ShmGroup::view_counter(int replica) const {
  return crane::view_counter(View{shared_->replicas[replica].view.load()});
}

bool ShmGroup::wait_all_applied(int timeout_ms) {
  return until(
      [&] {
        std::uint64_t low = ~std::uint64_t{0};
        std::uint64_t high = 0;
        for (int i = 0; i < options_.replicas; ++i) {
          if (!alive(i)) continue;
          low = std::min(low, applied(i));
          high = std::max(high, applied(i));
        }
        return low == high;
      },
      timeout_ms);
}

bool ShmGroup::all_agree() const {
  const Shared::Replica* best = nullptr;
  for (int i = 0; i < options_.replicas; ++i) {
    const Shared::Replica& r = shared_->replicas[i];
    if (r.broken != 0) return false;
    if (alive(i) && (best == nullptr || r.applied > best->applied)) best = &r;
  }
  for (int i = 0; i < options_.replicas; ++i) {
    const std::uint64_t index = applied(i);
    if (!alive(i) || index == 0) continue;
    const std::uint64_t at = index % kHashes;
    if (shared_->replicas[i].hashes[at] != best->hashes[at]) return false;
  }
  return true;
}

std::vector<std::uint64_t> ShmGroup::latencies_ns() const {
  std::vector<std::uint64_t> all(std::min<std::uint64_t>(shared_->latencies, kLatenciesMax));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = shared_->latency_ns[i];
  std::sort(all.begin(), all.end());
  return all;
}

ShmGroup::Memory ShmGroup::memory() const {
  Memory m;
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
    for (std::string line; std::getline(in, line);) {
      unsigned long kib = 0;
      if (std::sscanf(line.c_str(), "Private_Dirty: %lu", &kib) == 1) m.private_kib += kib;
    }
  }
  std::error_code error;
  for (const auto& e : std::filesystem::recursive_directory_iterator(directory_, error)) {
    struct stat status {};
    if (::stat(e.path().c_str(), &status) == 0) {
      m.shared_kib += static_cast<std::uint64_t>(status.st_blocks) / 2;
    }
  }
  return m;
}

std::uint64_t ShmGroup::processor_us() const {
  const auto tick = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  std::uint64_t ticks = 0;
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(in, line);
    unsigned long user = 0;
    unsigned long system = 0;
    const auto at = line.rfind(')');
    if (at != std::string::npos &&
        std::sscanf(line.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                    &user, &system) == 2) {
      ticks += user + system;
    }
  }
  return ticks * 1'000'000 / tick;
}

}  // namespace crane::eval
