// SPDX-License-Identifier: Apache-2.0
#pragma once
// A readable log of a world: faults, elections, grants and commits as sentences, and equal events
// in one line.  It has every single operation only on request, or just before a violation.

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "dmt/base/ids.h"

namespace crane::consensus::sim {

class Trace {
 public:
  // Prints nothing if `out` is null.  If `all`, prints every operation, too.
  Trace(std::FILE* out, bool all, unsigned replicas);
  ~Trace() { end_runs(); }

  bool is_enabled() const { return out_ != nullptr; }
  // Prints an important line.
  void trace_line(std::uint64_t now_ns, const char* format, std::va_list arguments);
  // Prints one operation.
  void detail(std::uint64_t now_ns, const char* format, std::va_list arguments);
  // Counts an event of a frequent kind: `what` of replica `id`.
  void count(std::uint64_t now_ns, unsigned id, const char* what, std::uint64_t number);
  // Prints the last operations, which trace_line() alone does not show.
  void show_last();

 private:
  struct Run {
    const char* what = nullptr;
    std::uint64_t begin_ns = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t times = 0;
  };
  void end_runs();
  void print(std::uint64_t now_ns, const std::string& text);

  std::FILE* const out_;
  const bool all_;
  std::vector<std::vector<Run>> runs_;  // by replica
  std::deque<std::string> last_;
};

// A number for %llu.
template <typename N>
constexpr unsigned long long ull(N number) noexcept {
  return static_cast<unsigned long long>(number);
}

// "7.2": the seventh view, of replica 2; "none".
std::string text(View view);

}  // namespace crane::consensus::sim
