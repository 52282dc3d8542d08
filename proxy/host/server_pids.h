// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maps pids of a server inside its container to pids of the machine.
//
// Threads: plain functions.  last_pid() and set_last_pid() make a child that shares the memory; the
// caller waits for it with signals blocked.

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "dmt/base/result.h"
#include "dmt/layout.h"

namespace crane::node {

// Pid inside the container -> pid on this machine, for the processes in the segment that live in
// the pid namespace of `first`.
std::map<std::uint32_t, pid_t> server_pids(const dmt::Layout& w, pid_t first);

// The last number that the kernel assigned in the pid namespace of `first`.  While it is equal on
// all replicas, processes and threads of the server get the same numbers there (DESIGN D7).
// Errors: kDenied, kSystem.
Result<std::uint32_t> last_pid(pid_t first);
Outcome set_last_pid(pid_t first, std::uint32_t last);

}  // namespace crane::node
