// SPDX-License-Identifier: Apache-2.0
#pragma once
// A child process connected by pipes, and the lines that it prints.
//
// Threads: one.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crane::launcher {

// Pipes to the child's standard input and from its output and error; non-blocking; -1: none.
struct Child {
  pid_t pid = -1;
  int in = -1, out = -1, err = -1;
};

enum class ParentDeathPolicy {
  kPipes,  // the child continues when this process dies, and finds its pipes closed
  kParent  // the child gets SIGTERM then; it has no input, and `out` carries output and error
};

// Runs argv[0] (looked up in PATH) in a new session.  Returns false with errno on failure.
bool spawn_child(const std::vector<std::string>& argv, ParentDeathPolicy parent_death,
                 Child& child);

// Splits the input of a non-blocking descriptor into lines.
class Lines {
 public:
  // Calls `take` for each available line.  Returns false at the end of the input.
  bool read_from(int fd, const std::function<void(const std::string&)>& take);

 private:
  std::string rest_;
};

// Waits, as the subreaper of the nodes' processes, for those that the nodes left behind (container
// supervisors that clean up), at most 10 s, and removes what the killed ones left.  Calls
// `meanwhile` before each look.
void wait_for_left_processes(const std::function<void()>& meanwhile = [] {});

std::int64_t now_ms();

}  // namespace crane::launcher
