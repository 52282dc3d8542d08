// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fetches a checkpoint from another host for a replica that cannot begin without one.  A running
// replica uses Shipping (shipping.h) instead.
//
// Threads: the only one of the process.  Both functions block, and a signal ends the process
// meanwhile (parts that have arrived stay, and the next fetch continues with them).

#include <cstdint>

#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// How long a failing fetch is repeated.  Pure; times in ns.
class FetchDeadline {
 public:
  explicit FetchDeadline(std::int64_t now_ns) noexcept
      : since_ns_(now_ns), last_answer_ns_(now_ns) {}
  // Call after a failed try, with the bytes that have arrived so far; false: give up.
  bool again(std::int64_t now_ns, Code failure, std::uint64_t arrived) noexcept;

 private:
  std::int64_t since_ns_;        // time of the last progress
  std::int64_t last_answer_ns_;  // time of the last answer of another replica
  std::uint64_t arrived_ = 0;
};

// For a replica whose host has neither log nor checkpoint of the group: fetches the newest
// checkpoint of another replica.  If there is none, the replica begins as a new one or, if the
// others know it, as one that lost its memory.  False: it cannot begin, because the checkpoint of
// another replica cannot be fetched; a message gives the reason.
bool fetch_before_start(const Config& config);

// A node ended with this status: whether it lacked a checkpoint, and one is now on this host.  If
// no replica has one, the leader takes one.
bool fetch_after(const Config& config, ExitStatus status);

}  // namespace crane::node
