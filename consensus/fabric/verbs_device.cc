// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/verbs_device.h"

#include <arpa/inet.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>

#include "consensus/fabric/tmpfs_fabric.h"
#include "dmt/base/log.h"

namespace crane::consensus::verbs {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint32_t kReadsInFlightMax = 16;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms; credits keep receivers ready (FABRIC-F11)
constexpr std::size_t kSlabBytes = 64U << 10;
constexpr std::size_t kSmallest = 256;
constexpr std::uint32_t kSoftRoce = 0xffffff;  // its vendor id

struct FreeList {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};

// The message contains the remedy, so that a user who wants RDMA and has no device need not read
// this code.
Error no_device(const std::string& wanted, const std::string& there) {
  Message() << "no usable RDMA device" << (wanted.empty() ? "" : " named ") << wanted.c_str()
            << ": devices of this machine: " << (there.empty() ? "none" : there.c_str())
            << "; name another, or make a software one: modprobe rdma_rxe && rdma link add rxe0 "
               "type rxe netdev <interface>";
  return Error{Code::kNotFound, 0, "no usable RDMA device"};
}

bool mapped_v4(const ibv_gid& gid) noexcept {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

// The GID of a numeric address: the IPv6 address, or the IPv4-mapped form.
bool gid_of(const std::string& address, ibv_gid& gid) noexcept {
  if (::inet_pton(AF_INET6, address.c_str(), gid.raw) == 1) return true;
  return ::inet_pton(AF_INET6, ("::ffff:" + address).c_str(), gid.raw) == 1;
}

}  // namespace

std::uint32_t random_psn() noexcept {
  return static_cast<std::uint32_t>(random_word() >> 8) & 0xffffff;
}

std::vector<std::string> device_names() {
  int n = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&n));
  std::vector<std::string> names;
  for (int i = 0; list && i < n; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  return names;
}

Result<Device> Device::open(const std::string& name, const std::string& address) {
  auto found = open(name, address, true);
  // The address may belong to another network than the devices' addresses.  Then any device will
  // do.
  return found || address.empty() ? std::move(found) : open(name, address, false);
}

Result<Device> Device::open(const std::string& name, const std::string& address, bool strict) {
  int n = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&n));
  std::string there;
  for (int i = 0; list && i < n; ++i) {
    ibv_device* const d = list.get()[i];
    const std::string is = ibv_get_device_name(d);
    there += (there.empty() ? "" : " ") + is;
    if (!name.empty() && is != name) continue;
    Device out;
    out.context_.reset(ibv_open_device(d));
    if (!out.context_ || ibv_query_device(out.context(), &out.limits_) != 0 ||
        ibv_query_port(out.context(), kPort, &out.port_) != 0) {
      there += " (cannot be opened)";
      continue;
    }
    if (out.port_.state != IBV_PORT_ACTIVE) {
      there += " (port not active)";
      continue;
    }
    if (const Outcome chosen = out.choose_gid(strict ? address : ""); !chosen) {
      there += " (without RoCE v2 address)";
      continue;
    }
    return out;
  }
  if (strict && !address.empty()) return Error{Code::kNotFound, 0, "no device of that address"};
  return no_device(name, there);
}

// Chooses the RoCE version 2 GID of the wanted address or, without an address, any RoCE version 2
// GID.  An InfiniBand port needs no choice.
Outcome Device::choose_gid(const std::string& address) {
  if (port_.link_layer != IBV_LINK_LAYER_ETHERNET) {
    return ibv_query_gid(context(), kPort, 0, &gid_) == 0 ? Outcome{Done{}}
                                                          : Outcome{system_error("query GID")};
  }
  ibv_gid wanted{};
  const bool is_named = !address.empty() && gid_of(address, wanted);
  int best = -1;
  for (int i = 0; i < port_.gid_tbl_len && i < 256; ++i) {
    ibv_gid_entry e{};
    if (ibv_query_gid_ex(context(), kPort, static_cast<std::uint32_t>(i), &e, 0) != 0) continue;
    if (e.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    const bool same = is_named && std::memcmp(e.gid.raw, wanted.raw, sizeof wanted.raw) == 0;
    if (is_named ? !same : best >= 0 && !mapped_v4(e.gid)) continue;
    best = i;
    gid_ = e.gid;
    if (same || mapped_v4(e.gid)) break;
  }
  if (best < 0) return Error{Code::kNotFound, 0, "no RoCE v2 address"};
  gid_index_ = static_cast<std::uint8_t>(best);
  return Done{};
}

std::string Device::driver() const {
  if (limits_.vendor_id == kSoftRoce) return "rxe";
  std::error_code none;
  const std::filesystem::path link = std::string(context_->device->ibdev_path) + "/device/driver";
  return std::filesystem::read_symlink(link, none).filename().string();
}

Remote Device::here() const noexcept {
  Remote out;
  out.mtu = port_.active_mtu;
  out.gid = gid_;
  out.lid = port_.lid;
  return out;
}

Result<Owned<ibv_pd>> Device::domain() const noexcept {
  Owned<ibv_pd> out(ibv_alloc_pd(context()));
  if (!out) return system_error("allocate protection domain");
  return out;
}

Result<Owned<ibv_cq>> Device::queue(std::uint32_t entries,
                                    ibv_comp_channel* channel) const noexcept {
  Owned<ibv_cq> out(ibv_create_cq(context(), std::min(static_cast<int>(entries), limits_.max_cqe),
                                  nullptr, channel, 0));
  if (!out) return system_error("create completion queue");
  return out;
}

Result<Owned<ibv_qp>> Device::connection(ibv_pd* pd, ibv_cq* sends, ibv_cq* receives,
                                         const QpLimits& limits, unsigned access) const noexcept {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = sends;
  init.recv_cq = receives;
  init.cap.max_send_wr = limits.sends;
  init.cap.max_recv_wr = std::max<std::uint32_t>(limits.receives, 1);
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = limits.inline_bytes;
  Owned<ibv_qp> out(ibv_create_qp(pd, &init));
  if (!out) return system_error("create queue pair");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = access;
  const int error = ibv_modify_qp(
      out.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return Error{Code::kSystem, error, "queue pair to INIT"};
  return out;
}

Outcome Device::connect(ibv_qp* qp, const Remote& to, std::uint32_t psn,
                        const RetryPolicy& retry) const noexcept {
  CRANE_ASSERT(retry.retries <= 6);  // VERBS-V1
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min<std::uint32_t>(to.mtu, port_.active_mtu));
  attr.dest_qp_num = to.qpn;
  attr.rq_psn = to.psn;
  const auto reads = static_cast<std::uint8_t>(std::min<std::uint32_t>(
      static_cast<std::uint32_t>(limits_.max_qp_rd_atom), kReadsInFlightMax));
  attr.max_dest_rd_atomic = reads;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.dlid = to.lid;
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = to.gid;
    attr.ah_attr.grh.sgid_index = gid_index_;
    attr.ah_attr.grh.hop_limit = 64;
  }
  int error = ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return Error{Code::kSystem, error, "queue pair to RTR"};
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = retry.timeout;
  attr.retry_cnt = retry.retries;
  attr.rnr_retry = retry.retries;
  attr.sq_psn = psn;
  attr.max_rd_atomic = reads;
  error = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) return Error{Code::kSystem, error, "queue pair to RTS"};
  return Done{};
}

std::uint32_t Device::inline_bytes(std::uint32_t wanted) const noexcept {
  auto pd = domain();
  auto cq = queue(1, nullptr);
  if (!pd || !cq) return 0;
  for (std::uint32_t bytes = wanted; bytes > 0; bytes /= 2) {
    if (connection(pd.value().get(), cq.value().get(), cq.value().get(), {1, 1, bytes}, 0).ok()) {
      return bytes;
    }
  }
  return 0;
}

// --- buffers ------------------------------------------------------------------------------------

Buffers::~Buffers() { release(); }

Buffers::Buffers(Buffers&& other) noexcept
    : pd_(std::exchange(other.pd_, nullptr)),
      slabs_(std::move(other.slabs_)),
      free_(std::move(other.free_)) {
  other.slabs_.clear();
}

Buffers& Buffers::operator=(Buffers&& other) noexcept {
  if (this != &other) {
    release();
    pd_ = std::exchange(other.pd_, nullptr);
    slabs_ = std::move(other.slabs_);
    free_ = std::move(other.free_);
    other.slabs_.clear();
  }
  return *this;
}

void Buffers::release() noexcept {
  for (Slab& slab : slabs_) {
    slab.region.reset();
    ::munmap(slab.at, slab.size);
  }
  slabs_.clear();
  free_.clear();
}

Result<Buffers::Buffer> Buffers::take(std::size_t size) {
  const auto each = static_cast<std::uint32_t>(std::bit_ceil(std::max(size, kSmallest)));
  auto& free = free_[each];
  if (free.empty()) {
    const std::size_t bytes = std::max<std::size_t>(each, kSlabBytes);
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return system_error("map a buffer");
    Owned<ibv_mr> region(ibv_reg_mr(pd_, at, bytes, IBV_ACCESS_LOCAL_WRITE));
    if (!region) {
      const Error why = system_error("register a buffer");
      ::munmap(at, bytes);
      return why;
    }
    auto* const first = static_cast<std::byte*>(at);
    for (std::size_t used = 0; used + each <= bytes; used += each) {
      free.push_back({first + used, each, region->lkey});
    }
    slabs_.push_back({first, bytes, std::move(region)});
  }
  const Buffer out = free.back();
  free.pop_back();
  return out;
}

void Buffers::return_buffer(const Buffer& buffer) {
  if (buffer.at != nullptr) free_[buffer.size].push_back(buffer);
}

}  // namespace crane::consensus::verbs
