// SPDX-License-Identifier: Apache-2.0
#pragma once
// What need not pass the node (egress_gate.h): a BPF program that the kernel's packet filter asks
// first.  It lets a packet of a connection pass that acknowledges no more than allow() said, as
// answers do, whose request is committed by then.  All else goes to the gate: other packets, first
// and last ones, and everything once the node has not been heard of for kFreshNs, because it is
// dead, stopped or idle.
//
// Needs CAP_BPF and CAP_NET_ADMIN, a BPF file system (/sys/fs/bpf; it is mounted where it is
// absent), and iptables' match `bpf`.  Threads: the loop's.
// Errors: Result; without it each packet passes the node, which costs a fifth of the rate.

#include <cstdint>
#include <memory>
#include <string>

#include "dmt/base/result.h"

namespace crane::proxy {

class EgressFilter {
 public:
  static constexpr std::int64_t kFreshNs = 50'000'000;

  // `number`: of the gate's queue, which names the program.
  static Result<std::unique_ptr<EgressFilter>> open(std::uint16_t number);
  ~EgressFilter();
  EgressFilter(const EgressFilter&) = delete;
  EgressFilter& operator=(const EgressFilter&) = delete;

  // Of the pinned program, for a rule with `-m bpf --object-pinned`.
  static std::string path_of(std::uint16_t number);

  // In host order.
  static std::uint64_t key(std::uint32_t client, std::uint16_t port, std::uint16_t client_port);
  void allow(std::uint64_t key, std::uint32_t next) noexcept;
  void forget(std::uint64_t key) noexcept;
  // Nothing passes until fresh().
  void close() noexcept { *until_ns_ = 0; }
  // The node is there, and its gate is open.
  void fresh() noexcept;

 private:
  EgressFilter() = default;

  std::string path_;
  int flows_ = -1;  // key: the first sequence number that must not be acknowledged
  int state_ = -1;
  std::uint64_t* until_ns_ = nullptr;  // of the kernel's monotonic clock, shared with it
};

}  // namespace crane::proxy
