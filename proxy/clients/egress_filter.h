// SPDX-License-Identifier: Apache-2.0
#pragma once
// The packets that need not pass through the node (egress_gate.h), decided by a BPF program that
// the kernel's packet filter calls first.  The program passes a packet of a connection that
// acknowledges no more than allow() permits.  Answers do that, because their request is committed
// by then.  The node decides about all other packets: about other connections, a connection's
// first and last packets, and all packets if its last fresh() was more than kFreshNs ago, because
// then it is dead, stopped or idle.
//
// Needs CAP_BPF and CAP_NET_ADMIN, a BPF file system (/sys/fs/bpf, mounted if it is absent), and
// the iptables match `bpf`.  Threads: the loop's.
// Errors: Result; without the filter each packet passes through the node, which costs a fifth of
// the rate.

#include <cstdint>
#include <memory>
#include <string>

#include "dmt/base/result.h"

namespace crane::proxy {

class EgressFilter {
 public:
  static constexpr std::int64_t kFreshNs = 50'000'000;

  // `number` is the number of the gate's queue, and part of the program's name.
  static Result<std::unique_ptr<EgressFilter>> open(std::uint16_t number);
  ~EgressFilter();
  EgressFilter(const EgressFilter&) = delete;
  EgressFilter& operator=(const EgressFilter&) = delete;

  // Path of the pinned program, for a rule with `-m bpf --object-pinned`.
  static std::string path_of(std::uint16_t number);

  // Arguments in host byte order.
  static std::uint64_t key(std::uint32_t client, std::uint16_t port, std::uint16_t client_port);
  void allow(std::uint64_t key, std::uint32_t next) noexcept;
  void forget(std::uint64_t key) noexcept;
  // Nothing passes until fresh().
  void close() noexcept { *until_ns_ = 0; }
  // The node runs, and its gate is open.
  void fresh() noexcept;

 private:
  EgressFilter() = default;

  std::string path_;
  int flows_ = -1;  // map of flows; value: the first sequence number that must not be acknowledged
  int state_ = -1;
  // A time of the kernel's monotonic clock, shared with the kernel.
  std::uint64_t* until_ns_ = nullptr;
};

}  // namespace crane::proxy
