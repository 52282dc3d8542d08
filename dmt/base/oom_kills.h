// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the kernel's OOM killer ended processes: if a node or a server was killed then, memory is
// short, and neither its checkpoint nor an operator is the cause.
//
// Threads: any.  Allocates memory, so the preloaded library cannot use it.

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

namespace crane {

// What a message about a killed process adds; empty for 0.
inline std::string oom_text(std::uint64_t kills) {
  if (kills == 0) return "";
  return "; since it began, the kernel's OOM killer has ended " + std::to_string(kills) +
         (kills == 1 ? " process" : " processes") +
         " on this machine: give the machine, or the control group that dmesg names, more memory";
}

class OomKills {
 public:
  // Begins to count.  `file`: the kernel's counters since the boot, for all control groups.
  explicit OomKills(std::string file = "/proc/vmstat")
      : file_(std::move(file)), before_(all_in(file_)) {}

  // Processes on this machine since then; 0 also if the kernel does not count them.
  std::uint64_t since() const {
    const std::uint64_t all = all_in(file_);
    return all > before_ ? all - before_ : 0;
  }
  std::string text() const { return oom_text(since()); }

 private:
  static std::uint64_t all_in(const std::string& file) {
    std::ifstream in(file);
    std::string name;
    for (std::uint64_t count = 0; in >> name >> count;) {
      if (name == "oom_kill") return count;
    }
    return 0;
  }

  std::string file_;
  std::uint64_t before_;
};

}  // namespace crane
