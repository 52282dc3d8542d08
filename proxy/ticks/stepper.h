// SPDX-License-Identifier: Apache-2.0
#pragma once
// Follows a thread for a short while, instruction by instruction (ptrace).  That changes nothing
// for the thread but its speed.
//
// Threads: plain functions, which block; for a process of their own.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace crane::ticks {

struct Stepping {
  std::vector<std::uint64_t> steps;
  std::string why;  // it could not begin: what the kernel said; else ""
};

// At most `most` instructions and `limit_ns` of time; fewer when the thread makes a system call or
// gets a signal, which it then handles as it would have.
Stepping step_through(pid_t thread, std::size_t most, std::int64_t limit_ns);

// The thread of the process that has this number in the process' own pid namespace; 0: none.
pid_t thread_by_inner_number(pid_t process, std::uint32_t number);

}  // namespace crane::ticks
