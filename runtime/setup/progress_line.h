// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows on standard error how far a step of a command is, until the step ends.
//
// On a terminal: one line that changes, and is removed at the end.  Elsewhere: a line every second.
// A step that ends within a second shows nothing, unless a step before it wrote a line: then lines
// come every second across the steps.  After show_progress(false) no step shows anything.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "runtime/control/progress.h"

namespace crane::setup {

inline constexpr std::int64_t kLineEveryNs = 1'000'000'000;
// When a step that begins at `now_ns` writes its first line.  `last_ns`: when the last line of any
// step was written; 0: none was.
constexpr std::int64_t first_line_ns(std::int64_t now_ns, std::int64_t last_ns) noexcept {
  const std::int64_t next_ns = (last_ns == 0 ? now_ns : last_ns) + kLineEveryNs;
  return next_ns < now_ns ? now_ns : next_ns;
}

// The program-wide switch of --quiet.
void show_progress(bool on);

// For a program that has an event loop of its own, or that forks.  Threads: one.
class ProgressWriter {
 public:
  ProgressWriter(std::string step, control::Unit unit) : step_(std::move(step)), unit_(unit) {}
  ~ProgressWriter() { hide(); }
  ProgressWriter(const ProgressWriter&) = delete;
  ProgressWriter& operator=(const ProgressWriter&) = delete;

  // Writes "packs shop.bak: 35 %, 1.2 GB of 3.4 GB, 3 s left", if a line is due.  `of` 0: the whole
  // is not known, and the line has the time that has passed.
  void show(std::uint64_t done, std::uint64_t of);
  // Removes the line from a terminal, so that others can print; show() writes it again.
  void hide();
  // How long a caller may wait before the next show().
  std::int64_t pause_ms() const noexcept;

 private:
  const std::string step_;
  const control::Unit unit_;
  control::ProgressMeter meter_;
  std::int64_t began_ns_ = -1, next_ns_ = 0;
  bool on_terminal_ = false, written_ = false;
  bool on_line_ = false;  // the terminal's line has the text
};

// For a step that waits for disks or other processes: a thread of its own writes the line.
// Threads: add() and set() any.  Do not fork while one exists.
class ProgressLine {
 public:
  ProgressLine(std::string step, std::uint64_t of, control::Unit unit = control::Unit::kBytes);

  void add(std::uint64_t done) noexcept { done_ += done; }
  void set(std::uint64_t done, std::uint64_t of) noexcept { of_ = of, done_ = done; }

 private:
  void show_until_stopped(const std::stop_token& stopped);

  ProgressWriter writer_;
  std::atomic<std::uint64_t> done_ = 0, of_;
  std::jthread thread_;  // last, because it uses the others
};

}  // namespace crane::setup
