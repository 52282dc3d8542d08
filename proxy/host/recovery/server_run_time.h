// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long the processes of a server have run on processors: what a lost replica has to run again
// of the log takes it about as long.
//
// Threads: the node's one thread.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace crane::node {

// Of a line of /proc/PID/stat: user and system time of the process and of its children that have
// ended, in ticks of the kernel; nullopt: it is no such line.
std::optional<std::uint64_t> ticks_of(std::string_view stat) noexcept;

class ServerRunTime {
 public:
  // Whether it is time for a look().
  bool is_due(std::int64_t now_ns) noexcept {
    if (now_ns < look_at_ns_) return false;
    look_at_ns_ = now_ns + kLookNs;
    return true;
  }
  // In all so far, ns; never less than before.  What ran in a process that nothing waited for since
  // the last look is lost.
  std::int64_t look(const std::map<std::uint32_t, pid_t>& processes);

 private:
  static constexpr std::int64_t kLookNs = 1'000'000'000;

  std::int64_t look_at_ns_ = 0;
  std::uint64_t before_ = 0;  // ticks of the processes that were there at the last look
  std::int64_t run_ns_ = 0;
};

}  // namespace crane::node
