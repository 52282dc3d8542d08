// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processes of a server as the machine and as its container number them.
//
// Threads: plain functions; the second ones make a child that shares the memory, with the caller
// waiting and its signals blocked.

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

// Pid inside of the container -> pid of this machine, for those of the segment's processes that
// live in the pid namespace of `first`.
std::map<std::uint32_t, pid_t> server_pids(const dmt::Layout& w, pid_t first);

// The number that the kernel gave last in the pid namespace of `first`: processes and threads of a
// server are numbered alike on all replicas (DESIGN D7) as long as this is.
// Errors: kDenied, kSystem.
Result<std::uint32_t> last_pid(pid_t first);
Outcome set_last_pid(pid_t first, std::uint32_t last);

}  // namespace crane::node
