// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owned objects of libibverbs: an open device, protection domains, memory regions, completion
// queues and reliable connections.  No policy of the fabric.
//
// Threads: as for libibverbs: one thread at a time may use an object.
// Errors: Result.  A message also reports errors that a user can fix (no device, wrong name).

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::consensus::verbs {

struct Release {
  void operator()(ibv_context* c) const noexcept { ibv_close_device(c); }
  void operator()(ibv_pd* p) const noexcept { ibv_dealloc_pd(p); }
  void operator()(ibv_mr* m) const noexcept { ibv_dereg_mr(m); }
  void operator()(ibv_cq* c) const noexcept { ibv_destroy_cq(c); }
  void operator()(ibv_qp* q) const noexcept { ibv_destroy_qp(q); }
  void operator()(ibv_comp_channel* c) const noexcept { ibv_destroy_comp_channel(c); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;

// The address of the other end of a connection.
struct Remote {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t mtu = 0;  // an ibv_mtu
  ibv_gid gid{};
  std::uint16_t lid = 0;
};

struct QpLimits {
  std::uint32_t sends = 0;
  std::uint32_t receives = 0;
  std::uint32_t inline_bytes = 0;
};

// How long a packet waits for its acknowledgement, and how often it is sent.  The time to an error
// is about 4.096 us * 2^timeout * (retries + 1).  INVARIANT VERBS-V1: retries <= 6.  For soft-RoCE,
// 7 means "for ever": an operation on a dead peer would never complete (FABRIC-F4).
struct RetryPolicy {
  std::uint8_t timeout = 10;
  std::uint8_t retries = 4;
};

// The RDMA devices of this machine, usable or not.
std::vector<std::string> device_names();

class Device {
 public:
  // An empty name: a device that has the numeric address `address`, else the first with an active
  // port.  The address chooses the GID when the port has several.
  static Result<Device> open(const std::string& name, const std::string& address);

  ibv_context* context() const noexcept { return context_.get(); }
  const char* name() const noexcept { return ibv_get_device_name(context_->device); }
  // The kernel driver, like "mlx5_core" or, for a software device, "rxe"; empty: unknown.
  std::string driver() const;
  std::uint32_t max_message() const noexcept { return port_.max_msg_sz; }
  // This end of any connection, except qpn and psn.
  Remote here() const noexcept;

  Result<Owned<ibv_pd>> domain() const noexcept;
  Result<Owned<ibv_cq>> queue(std::uint32_t entries, ibv_comp_channel* channel) const noexcept;
  // A reliable connection in state INIT, with the peer's access rights `access`.
  Result<Owned<ibv_qp>> connection(ibv_pd* pd, ibv_cq* sends, ibv_cq* receives,
                                   const QpLimits& limits, unsigned access) const noexcept;
  // Moves `qp` from INIT to RTR and RTS.  `psn` is the first one that this end sends.
  Outcome connect(ibv_qp* qp, const Remote& to, std::uint32_t psn,
                  const RetryPolicy& retry) const noexcept;
  // The most inline bytes that a connection accepts, up to `wanted`.
  std::uint32_t inline_bytes(std::uint32_t wanted) const noexcept;

 private:
  static Result<Device> open(const std::string& name, const std::string& address, bool strict);
  Outcome choose_gid(const std::string& address);
  Owned<ibv_context> context_;
  ibv_device_attr limits_{};
  ibv_port_attr port_{};
  std::uint8_t gid_index_ = 0;
  ibv_gid gid_{};
};

std::uint32_t random_psn() noexcept;

// Registered memory that fork() does not copy: memory that a device writes must not move.
class Buffers {
 public:
  struct Buffer {
    std::byte* at = nullptr;
    std::uint32_t size = 0;
    std::uint32_t lkey = 0;
  };
  Buffers() = default;
  explicit Buffers(ibv_pd* pd) : pd_(pd) {}
  ~Buffers();
  Buffers(Buffers&& other) noexcept;
  Buffers& operator=(Buffers&& other) noexcept;
  // Returns at least `size` bytes; reuses buffers that were given back.
  Result<Buffer> take(std::size_t size);
  void return_buffer(const Buffer& buffer);

 private:
  struct Slab {
    std::byte* at;
    std::size_t size;
    Owned<ibv_mr> region;
  };
  void release() noexcept;
  ibv_pd* pd_ = nullptr;
  std::vector<Slab> slabs_;
  std::map<std::uint32_t, std::vector<Buffer>> free_;  // by size
};

}  // namespace crane::consensus::verbs
