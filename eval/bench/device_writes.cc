// SPDX-License-Identifier: Apache-2.0
#include "eval/bench/device_writes.h"

#include <utility>

#include "eval/bench/strategies_group.h"

namespace crane::eval {
namespace {

using consensus::verbs::Buffers;
using consensus::verbs::Device;
using consensus::verbs::Owned;
using consensus::verbs::Remote;

constexpr std::size_t kMemoryBytes = 4096;
constexpr std::uint32_t kInlineBytes = 256;
constexpr std::uint32_t kPsnHere = 9;
constexpr std::uint32_t kPsnThere = 5;

template <typename T>
T must(Result<T> got) {
  if (!got) fail(got.error().what);
  return std::move(got).value();
}

}  // namespace

struct DeviceWrites::Target {
  Device device;
  Owned<ibv_pd> domain;
  Owned<ibv_cq> cq;
  std::vector<std::byte> memory = std::vector<std::byte>(kMemoryBytes);
  Owned<ibv_mr> region;
  Owned<ibv_qp> there;
  Owned<ibv_qp> here;
};

DeviceWrites::DeviceWrites(const std::vector<std::string>& addresses, std::size_t bytes)
    : bytes_(bytes),
      device_(must(Device::open("", addresses[0]))),
      domain_(must(device_.domain())),
      cq_(must(device_.queue(64, nullptr))),
      source_(domain_.get()),
      from_(must(source_.take(kMemoryBytes))) {
  CRANE_ASSERT(bytes <= kInlineBytes);
  for (std::size_t i = 1; i < addresses.size(); ++i) add(addresses[i]);
}

DeviceWrites::~DeviceWrites() = default;

void DeviceWrites::add(const std::string& address) {
  auto t = std::make_unique<Target>();
  t->device = must(Device::open("", address));
  t->domain = must(t->device.domain());
  t->cq = must(t->device.queue(16, nullptr));
  t->region.reset(ibv_reg_mr(t->domain.get(), t->memory.data(), t->memory.size(),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!t->region) fail("memory cannot be registered: ulimit -l unlimited");
  t->there = must(t->device.connection(t->domain.get(), t->cq.get(), t->cq.get(), {1, 1, 0},
                                       IBV_ACCESS_REMOTE_WRITE));
  t->here = must(
      device_.connection(domain_.get(), cq_.get(), cq_.get(), {64, 1, kInlineBytes}, /*access=*/0));
  Remote there = t->device.here();
  there.qpn = t->there->qp_num;
  there.psn = kPsnThere;
  Remote here = device_.here();
  here.qpn = t->here->qp_num;
  here.psn = kPsnHere;
  must(t->device.connect(t->there.get(), here, kPsnThere, {}));
  must(device_.connect(t->here.get(), there, kPsnHere, {}));
  targets_.push_back(std::move(t));
}

std::uint64_t DeviceWrites::write(std::size_t n, bool inlined) {
  const std::uint64_t begin = now_ns();
  for (std::size_t i = 0; i < n; ++i) post(*targets_[i], inlined);
  std::size_t done = take();
  const std::uint64_t took = now_ns() - begin;
  while (done < n) done += take();
  return took;
}

void DeviceWrites::post(const Target& target, bool inlined) {
  ibv_sge place{reinterpret_cast<std::uint64_t>(from_.at), static_cast<std::uint32_t>(bytes_),
                from_.lkey};
  ibv_send_wr work{};
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  if (inlined) work.send_flags |= IBV_SEND_INLINE;
  work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(target.memory.data());
  work.wr.rdma.rkey = target.region->rkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(target.here.get(), &work, &bad) != 0) fail("a WRITE cannot be posted");
}

// Waits for at least one completion; how many came.
std::size_t DeviceWrites::take() {
  ibv_wc done[4];
  int n = 0;
  while ((n = ibv_poll_cq(cq_.get(), 4, done)) == 0) {
  }
  for (int i = 0; i < n; ++i) {
    if (done[i].status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(done[i].status));
  }
  if (n < 0) fail("the completion queue is broken");
  return static_cast<std::size_t>(n);
}

}  // namespace crane::eval
