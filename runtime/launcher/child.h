// SPDX-License-Identifier: Apache-2.0
#pragma once
// A child process at the end of pipes, and the lines it says.
//
// Threads: one.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crane::launcher {

// Pipes to its standard input and from its output and error, ours not blocking; -1: none.
struct Child {
  pid_t pid = -1;
  int in = -1, out = -1, err = -1;
};

enum class ParentDeathPolicy {
  kPipes,  // goes on when we die, and sees its pipes closed
  kParent  // gets SIGTERM when we die; no input; output and error come through `out`
};

// Runs argv[0] (looked up in PATH) in a session of its own.  False with errno.
bool spawn_child(const std::vector<std::string>& argv, ParentDeathPolicy parent_death,
                 Child& child);

// The lines that come through a descriptor that does not block.
class Lines {
 public:
  // Calls `take` for each line that is there; false once nothing more can come.
  bool read_from(int fd, const std::function<void(const std::string&)>& take);

 private:
  std::string rest_;
};

std::int64_t now_ms();

}  // namespace crane::launcher
