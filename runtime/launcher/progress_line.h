// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows on standard error how far a step of a command is, until the step ends.
//
// On a terminal: one line that changes, and is removed at the end.  Elsewhere: a line every second.
// A step that ends within a second shows nothing.  With show_progress(false) no step shows
// anything.
//
// Threads: add() any one thread; the line is written by a thread of its own, so that it continues
// while the step waits for a disk or another process.  Do not fork while one exists.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "runtime/control/progress.h"

namespace crane::launcher {

// The program-wide switch of --quiet.
void show_progress(bool on);

class ProgressLine {
 public:
  // "packs shop.bak: 35 %, 1.2 GB of 3.4 GB, 3 s left".  `of` 0: the whole is not known, and the
  // line has the time that has passed instead.
  ProgressLine(std::string step, std::uint64_t of, control::Unit unit = control::Unit::kBytes);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void add(std::uint64_t done) noexcept { done_ += done; }
  void set(std::uint64_t done, std::uint64_t of) noexcept { of_ = of, done_ = done; }

 private:
  void show_until_stopped(const std::stop_token& stopped);

  const std::string step_;
  const control::Unit unit_;
  std::atomic<std::uint64_t> done_ = 0, of_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace crane::launcher
