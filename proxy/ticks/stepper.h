// SPDX-License-Identifier: Apache-2.0
#pragma once
// Follows a thread for a short while, instruction by instruction (ptrace).  This only slows the
// thread down.
//
// Threads: plain functions, which block; call them in a separate process.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace crane::ticks {

struct Stepping {
  std::vector<std::uint64_t> steps;
  std::string why;  // the kernel's error if it could not begin; else ""
};

// Follows at most `most` instructions for at most `limit_ns`.  Stops earlier if the thread makes a
// system call or gets a signal, which the thread then handles as usual.
Stepping step_through(pid_t thread, std::size_t most, std::int64_t limit_ns);

// The thread of the process with this number in the process's pid namespace; 0: none.
pid_t thread_by_inner_number(pid_t process, std::uint32_t number);

}  // namespace crane::ticks
