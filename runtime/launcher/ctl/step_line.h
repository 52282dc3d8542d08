// SPDX-License-Identifier: Apache-2.0
#pragma once
// The present step of a command that waits, with the time that the step has taken:
// "upgrade of shop, step 3 of 4, the new server starts: 12 s" (runtime/setup/progress_line.h says
// where and when).
//
// Threads: one; do not fork while one exists.

#include <optional>
#include <string>
#include <utility>

#include "runtime/setup/progress_line.h"

namespace crane::launcher {

class StepLine {
 public:
  // `command`: begins each line.
  explicit StepLine(std::string command) : command_(std::move(command)) {}

  // The command has reached this step.
  void show(const std::string& step) {
    if (line_ && step == step_) return;
    step_ = step;
    line_.reset();
    line_.emplace(command_ + ", " + step, 0);
  }
  // Removes the line from a terminal, so that the command can print.
  void clear() { line_.reset(); }

 private:
  const std::string command_;
  std::string step_;
  std::optional<setup::ProgressLine> line_;
};

}  // namespace crane::launcher
