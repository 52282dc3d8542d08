// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/verbs_fence.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace crane::consensus {
namespace {

using verbs::Buffers;
using verbs::Device;
using verbs::Owned;
using verbs::Remote;
using Clock = std::chrono::steady_clock;

constexpr verbs::RetryPolicy kRetryPolicy{8, 2};

// The objects of one round; the writer's end and the owner's end are on the same device.
struct Round {
  Owned<ibv_pd> domain;
  Owned<ibv_cq> cq;
  Buffers source;
  Buffers::Buffer from;
  std::vector<std::byte>* target = nullptr;
  Owned<ibv_mr> region;
  std::uint32_t rkey = 0;  // of region; stays valid as a number when region is gone
  Owned<ibv_qp> writer, owner;
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> stop{false};
};

Outcome set_up(Round& r, const Device& device, std::size_t bytes) {
  auto domain = device.domain();
  auto cq = device.queue(16, nullptr);
  if (!domain) return domain.error();
  if (!cq) return cq.error();
  r.domain = std::move(domain).value();
  r.cq = std::move(cq).value();
  r.source = Buffers(r.domain.get());
  auto from = r.source.take(bytes);
  if (!from) return from.error();
  r.from = from.value();
  r.region.reset(ibv_reg_mr(r.domain.get(), r.target->data(), r.target->size(),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!r.region) return system_error("register memory");
  r.rkey = r.region->rkey;
  auto writer = device.connection(r.domain.get(), r.cq.get(), r.cq.get(), {4, 1, 0}, 0);
  auto owner =
      device.connection(r.domain.get(), r.cq.get(), r.cq.get(), {1, 1, 0}, IBV_ACCESS_REMOTE_WRITE);
  if (!writer) return writer.error();
  if (!owner) return owner.error();
  r.writer = std::move(writer).value();
  r.owner = std::move(owner).value();
  Remote to_owner = device.here();
  to_owner.qpn = r.owner->qp_num;
  to_owner.psn = 17;
  Remote to_writer = device.here();
  to_writer.qpn = r.writer->qp_num;
  to_writer.psn = 23;
  if (const Outcome done = device.connect(r.owner.get(), to_writer, 17, kRetryPolicy); !done) {
    return done;
  }
  return device.connect(r.writer.get(), to_owner, 23, kRetryPolicy);
}

// Writes 1, 2, 3, ... over the same place until a write is refused or `stop` is set.
void stream(Round& r, std::size_t bytes) {
  for (std::uint64_t n = 1; !r.stop.load(std::memory_order_relaxed); ++n) {
    std::memset(r.from.at, static_cast<int>(n & 0x7f) | 0x80, bytes);
    std::memcpy(r.from.at, &n, sizeof n);
    ibv_sge place{reinterpret_cast<std::uint64_t>(r.from.at), static_cast<std::uint32_t>(bytes),
                  r.from.lkey};
    ibv_send_wr work{};
    work.sg_list = &place;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(r.target->data());
    work.wr.rdma.rkey = r.rkey;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(r.writer.get(), &work, &bad) != 0) return;
    ibv_wc done{};
    while (ibv_poll_cq(r.cq.get(), 1, &done) == 0) {
      if (r.stop.load(std::memory_order_relaxed)) return;
    }
    if (done.status != IBV_WC_SUCCESS) return;
    r.completed.fetch_add(1, std::memory_order_relaxed);
  }
}

// "mlx5" matches mlx5_0 and mlx5_core.
bool matches_entry(const std::string& entry, const std::string& what) {
  return !entry.empty() && (what == entry || what.starts_with(entry + "_"));
}

}  // namespace

const char* name(Fence fence) noexcept {
  switch (fence) {
    case Fence::kDeregister:
      return "deregister";
    case Fence::kAccessFlags:
      return "flags";
    case Fence::kQueuePairReset:
      return "reset";
  }
  return "?";
}

int take_back(Fence fence, Owned<ibv_qp>& qp, Owned<ibv_mr>& region) noexcept {
  ibv_qp_attr none{};
  int error = 0;
  switch (fence) {
    case Fence::kDeregister:
      break;
    case Fence::kAccessFlags:
      error = ibv_modify_qp(qp.get(), &none, IBV_QP_ACCESS_FLAGS);
      if (error == 0) return 0;
      break;
    case Fence::kQueuePairReset:
      error = ibv_destroy_qp(qp.get());
      if (error == 0) {
        static_cast<void>(qp.release());
        return 0;
      }
      break;
  }
  const int failed = ibv_dereg_mr(region.get());
  if (failed == 0) static_cast<void>(region.release());
  return failed;
}

bool listed(const std::vector<std::string>& list, const std::string& device,
            const std::string& driver) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
    return matches_entry(entry, device) || matches_entry(entry, driver);
  });
}

Outcome check_fence_flags(bool on_list, const FenceReport& tested) noexcept {
  if (!on_list)
    return Error{Code::kUnsupported, 0, "the device is not listed in fence_flags_devices"};
  if (tested.late != 0) return Error{Code::kUnsupported, 0, "a write landed after a revoke"};
  return Done{};
}

Result<FenceReport> probe_fence(const Device& device, const FenceProbe& probe) {
  FenceReport report;
  std::mt19937_64 random(probe.seed);
  std::vector<std::byte> target(probe.bytes);
  std::vector<std::byte> seen(probe.bytes);
  const auto end = Clock::now() + std::chrono::seconds(probe.seconds_max);
  while (report.rounds < probe.rounds_max && Clock::now() < end &&
         !(probe.stop_at_first && report.late != 0)) {
    ++report.rounds;
    Round r;
    r.target = &target;
    if (const Outcome made = set_up(r, device, probe.bytes); !made) return made.error();
    std::thread writer([&] { stream(r, probe.bytes); });
    const std::uint64_t enough = 2 + random() % 16;
    const auto give_up = Clock::now() + std::chrono::seconds(5);
    while (r.completed.load(std::memory_order_relaxed) < enough && Clock::now() < give_up) {
    }
    const auto moment = Clock::now() + std::chrono::microseconds(random() % 50);
    while (Clock::now() < moment) {
    }
    const int error = take_back(probe.fence, r.owner, r.region);
    const auto revoked = Clock::now();
    std::memcpy(seen.data(), target.data(), seen.size());
    const auto until = revoked + std::chrono::microseconds(probe.watch_us);
    bool late = false;
    while (Clock::now() < until && !late) {
      late = std::memcmp(seen.data(), target.data(), seen.size()) != 0;
    }
    if (late) {
      ++report.late;
      const auto us =
          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - revoked).count();
      report.late_us_max = std::max(report.late_us_max, static_cast<unsigned>(us));
    }
    r.stop = true;
    writer.join();
    report.writes += r.completed;
    if (error != 0) return Error{Code::kSystem, error, "revoke a permission"};
  }
  return report;
}

}  // namespace crane::consensus
