// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor time of a server's processes so far.  A lost replica needs about the same time to
// run the missed part of the log.
//
// Threads: the node's one thread.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace crane::node {

// User and system time of the process and its ended children, from a line of /proc/PID/stat, in
// ticks of the kernel; nullopt: not such a line.
std::optional<std::uint64_t> ticks_of(std::string_view stat) noexcept;

class ServerRunTime {
 public:
  // Whether the next look() is due.
  bool is_due(std::int64_t now_ns) noexcept {
    if (now_ns < look_at_ns_) return false;
    look_at_ns_ = now_ns + kLookNs;
    return true;
  }
  // Total time so far, ns; never decreases.  The time since the last look of a process that ended
  // and was not waited for is lost.
  std::int64_t look(const std::map<std::uint32_t, pid_t>& processes);

 private:
  static constexpr std::int64_t kLookNs = 1'000'000'000;

  std::int64_t look_at_ns_ = 0;
  std::uint64_t before_ = 0;  // ticks of all processes at the last look
  std::int64_t run_ns_ = 0;
};

}  // namespace crane::node
