// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run --detach: the group's crane-run continues in a process and a session of its own, and
// the process that the user started waits until the group is up, or until that crane-run has ended.
//
// Until the group is up, the new process writes to the user's output like a crane-run in the
// foreground, so a failed start has the same messages.  It reports through a pipe:
//
//   the group is up   the text for the user; from then on its messages are only in runtime.log
//   it ended before   its exit status, with which the first process ends, too
//   nothing           it was killed: the kernel has closed the pipe
//
// There is no time limit.  A signal that ends a group, sent to the first process, goes to the new
// one.
//
// Threads / Processes: one thread; up to the end of wait() two processes.

#include <sys/types.h>

#include <optional>
#include <string>

namespace crane::launcher {

class Background {
 public:
  Background() = default;
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Makes the new process.  Returns nullopt in it; in the first process waits for its report and
  // returns the exit status.
  std::optional<int> leave();

  // In the new process: the group is up.  `log`: descriptor of runtime.log; -1: none.
  void up(const std::string& text, int log);
  // In the new process, before it ends.  Returns `status`.
  int ended(int status);

 private:
  void report(const std::string& text);

  int pipe_ = -1;
};

// What the new process reports through the pipe.
struct StartReport {
  bool up = false;
  int status = 0;    // if not up
  std::string text;  // if up
};
std::string text_of(const StartReport& report);
// nullopt: the text is empty or incomplete.
std::optional<StartReport> parse_report(const std::string& text);

// What a started group prints for its user.  `home`: the group's directory.
std::string introduction_of(const std::string& home);

}  // namespace crane::launcher
