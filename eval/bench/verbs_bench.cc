// SPDX-License-Identifier: Apache-2.0
// What a commit costs over RDMA beside what the device itself takes, interleaved in one process:
//
//   write      one WRITE of the entry's bytes and its completion
//   two        the same WRITE to two replicas, until one of them has completed (a majority of
//              three); two-inline the same with the bytes in the work request
//   commit     propose to on_committed, three replicas
//
//   bench-verbs --addresses A,B,C [--rounds N] [--payload BYTES]
//
// The addresses are those of three RDMA devices of this machine (tests/vm makes such).  Columns:
// median, 99th percentile and maximum in us, and the median's ratio to `two`.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/core/log.h"
#include "consensus/fabric/verbs_device.h"

namespace {

using crane::consensus::Consensus;
using crane::consensus::verbs::Buffers;
using crane::consensus::verbs::Device;
using crane::consensus::verbs::Owned;
using crane::consensus::verbs::Remote;

struct Settings {
  std::vector<std::string> addresses;
  int rounds = 2000;
  std::size_t payload = 64;
};

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "bench-verbs: %s\n", what);
  std::exit(1);
}

template <typename T>
T must(crane::Result<T> got) {
  if (!got) give_up(got.error().what);
  return std::move(got).value();
}

// --- the bare device ----------------------------------------------------------------------------

// A connection from the first device to another, and the memory behind it.
struct Target {
  Device device;
  Owned<ibv_pd> domain;
  Owned<ibv_cq> cq;
  Buffers memory;
  Owned<ibv_mr> region;
  Owned<ibv_qp> qp;
  std::vector<std::byte> bytes;
};

class Bare {
 public:
  explicit Bare(const Settings& s) : device_(must(Device::open("", s.addresses[0]))) {
    domain_ = must(device_.domain());
    cq_ = must(device_.queue(64, nullptr));
    source_ = Buffers(domain_.get());
    from_ = must(source_.take(4096));
    for (std::size_t i = 1; i < 3; ++i) add(s.addresses[i]);
  }

  // Posts `size` bytes to the first `n` targets; the time until the first has completed.
  std::uint64_t write(std::size_t n, std::size_t size, bool inlined) {
    const std::uint64_t begin = now_ns();
    for (std::size_t i = 0; i < n; ++i) post(i, size, inlined);
    std::size_t done = take(true);
    const std::uint64_t took = now_ns() - begin;
    while (done < n) done += take(true);
    return took;
  }

 private:
  void add(const std::string& address) {
    auto t = std::make_unique<Target>(
        Target{must(Device::open("", address)), {}, {}, {}, {}, {}, std::vector<std::byte>(4096)});
    t->domain = must(t->device.domain());
    t->cq = must(t->device.queue(16, nullptr));
    t->region.reset(ibv_reg_mr(t->domain.get(), t->bytes.data(), t->bytes.size(),
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (!t->region) give_up("register memory");
    t->qp = must(t->device.connection(t->domain.get(), t->cq.get(), t->cq.get(), {1, 1, 0},
                                      IBV_ACCESS_REMOTE_WRITE));
    qps_.push_back(must(device_.connection(domain_.get(), cq_.get(), cq_.get(), {64, 1, 256}, 0)));
    Remote there = t->device.here();
    there.qpn = t->qp->qp_num;
    there.psn = 5;
    Remote here = device_.here();
    here.qpn = qps_.back()->qp_num;
    here.psn = 9;
    must(t->device.connect(t->qp.get(), here, 5, {}));
    must(device_.connect(qps_.back().get(), there, 9, {}));
    targets_.push_back(std::move(t));
  }

  void post(std::size_t i, std::size_t size, bool inlined) {
    ibv_sge place{reinterpret_cast<std::uint64_t>(from_.at), static_cast<std::uint32_t>(size),
                  from_.lkey};
    ibv_send_wr work{};
    work.sg_list = &place;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    if (inlined) work.send_flags |= IBV_SEND_INLINE;
    work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(targets_[i]->bytes.data());
    work.wr.rdma.rkey = targets_[i]->region->rkey;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qps_[i].get(), &work, &bad) != 0) give_up("post a WRITE");
  }

  std::size_t take(bool wait) {
    ibv_wc done[4];
    int n = 0;
    while ((n = ibv_poll_cq(cq_.get(), 4, done)) == 0 && wait) {
    }
    for (int i = 0; i < n; ++i) {
      if (done[i].status != IBV_WC_SUCCESS) give_up(ibv_wc_status_str(done[i].status));
    }
    return static_cast<std::size_t>(std::max(n, 0));
  }

  Device device_;
  Owned<ibv_pd> domain_;
  Owned<ibv_cq> cq_;
  Buffers source_;
  Buffers::Buffer from_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<Owned<ibv_qp>> qps_;
};

// --- the group ----------------------------------------------------------------------------------

struct Replica {
  std::unique_ptr<Consensus> consensus;
  std::uint64_t committed = 0;
  bool leads = false;

  Replica(const Settings& s, const std::string& directory, std::uint8_t self) {
    crane::consensus::Options o;
    o.directory = directory;
    o.self = crane::ReplicaId{self};
    o.ring_bytes = 8U << 20;
    o.log_id = 99;
    o.fabric = crane::consensus::FabricKind::kVerbs;
    for (const std::string& a : s.addresses) o.endpoints.push_back({a, 23000});
    o.secret.fill(std::byte{1});
    o.callbacks.on_committed = [this](const auto& e) { committed = value(e.at.index); };
    o.callbacks.on_role = [this](auto role, auto, auto) {
      leads = role == crane::consensus::Role::kLeader;
    };
    consensus = must(Consensus::open(std::move(o)));
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

pid_t follower(const Settings& s, const std::string& directory, std::uint8_t self) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Replica r(s, directory, self);
  for (;;) {
    r.iterate(100'000'000);
    if (r.leads) r.consensus->abdicate("replica 0 is measured");
  }
}

std::optional<std::uint64_t> commit(Replica& r, const std::vector<std::byte>& payload) {
  const std::uint64_t begin = now_ns();
  const auto index = r.consensus->propose(1, begin, 0, payload);
  if (!index.ok()) return std::nullopt;
  while (r.committed < value(index.value())) {
    if (!r.leads) return std::nullopt;
    r.consensus->poll(now_ns());
  }
  return now_ns() - begin;
}

struct Series {
  const char* name;
  std::vector<std::uint64_t> ns;
};

void print(std::vector<Series>& all, const Series& base) {
  const auto at = [](const std::vector<std::uint64_t>& sorted, double p) {
    const auto i = static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1));
    return static_cast<double>(sorted[i]) / 1e3;
  };
  for (Series& s : all) std::sort(s.ns.begin(), s.ns.end());
  for (const Series& s : all) {
    if (s.ns.empty()) continue;
    std::printf("  %-12s p50 %8.2f  p99 %8.2f  max %9.2f us   %.2f x two   (%zu)\n", s.name,
                at(s.ns, 0.5), at(s.ns, 0.99), at(s.ns, 1), at(s.ns, 0.5) / at(base.ns, 0.5),
                s.ns.size());
  }
}

int measure(const Settings& s, const std::string& directory) {
  const pid_t followers[] = {follower(s, directory, 1), follower(s, directory, 2)};
  Replica leader(s, directory, 0);
  Bare bare(s);
  const std::uint64_t until = now_ns() + 30'000'000'000;
  while (!leader.leads && now_ns() < until) leader.iterate(1'000'000);
  int status = 1;
  if (leader.leads) {
    const std::vector<std::byte> payload(s.payload, std::byte{42});
    const std::size_t wire = crane::consensus::core::entry_bytes(s.payload);
    std::vector<Series> all = {{"write", {}}, {"two", {}}, {"two-inline", {}}, {"commit", {}}};
    for (int i = 0; i < s.rounds; ++i) {
      const bool warm = i >= s.rounds / 20;
      const std::uint64_t one = bare.write(1, wire, false);
      const std::uint64_t two = bare.write(2, wire, false);
      const std::uint64_t inlined = bare.write(2, std::min<std::size_t>(wire, 256), true);
      const auto committed = commit(leader, payload);
      if (warm) {
        all[0].ns.push_back(one);
        all[1].ns.push_back(two);
        all[2].ns.push_back(inlined);
        if (committed) all[3].ns.push_back(*committed);
      }
      if (i % 16 == 15) leader.iterate(0);
    }
    std::printf("  %zu bytes of payload, %zu on the wire\n", s.payload, wire);
    print(all, all[1]);
    status = 0;
  } else {
    std::fprintf(stderr, "bench-verbs: replica 0 did not become leader\n");
  }
  for (const pid_t pid : followers) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Commit latency over RDMA beside that of the device");
  app.add_option("--addresses", s.addresses, "of three RDMA devices")->delimiter(',')->expected(3);
  app.add_option("--rounds", s.rounds);
  app.add_option("--payload", s.payload);
  CLI11_PARSE(app, argc, argv);
  if (s.addresses.size() != 3) s.addresses = {"10.9.0.1", "10.9.0.2", "10.9.0.3"};
  std::string directory = "/dev/shm/crane-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) give_up("no directory on /dev/shm");
  const int status = measure(s, directory);
  std::filesystem::remove_all(directory);
  return status;
}
