// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints that a replica on a host of its own needs before it can begin: it fetches one from
// another host.  While it runs it does so by Shipping (shipping.h).
//
// Threads: the process' only one; both block, and a signal ends the process meanwhile (what has
// arrived stays, and is gone on with).

#include <cstdint>

#include "dmt/base/result.h"
#include "proxy/host/config.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

// How long a fetch that fails is tried again.  Pure; times in ns.
class FetchDeadline {
 public:
  explicit FetchDeadline(std::int64_t now_ns) noexcept : since_ns_(now_ns), heard_ns_(now_ns) {}
  // After a try that failed like this, with so many bytes there by now; false: that was enough.
  bool again(std::int64_t now_ns, Code failure, std::uint64_t arrived) noexcept;

 private:
  std::int64_t since_ns_;  // when more had arrived than before
  std::int64_t heard_ns_;  // when one of the others had answered
  std::uint64_t arrived_ = 0;
};

// A replica whose host holds nothing of the group, neither log nor checkpoint, begins at the newest
// that another one has; if none has any, as a new one, or, if the others know it, as one that
// lost its memory.  False: it cannot begin; another replica has one that cannot be fetched, as a
// message says.
bool fetch_before_start(const Config& config);

// A node ended with this status: was that for the lack of a checkpoint, and is one here now?  If
// none has it, the leader has one taken.
bool fetch_after(const Config& config, ExitStatus status);

}  // namespace crane::node
