// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel's report about a process in /proc/PID/stat (proc(5)).
//
// Threads: any.  Allocates memory, so the preloaded library cannot use it.

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "dmt/base/read_text.h"

namespace crane {

struct ProcessStat {
  char state = '?';  // Z: ended, but its parent has not waited for it; X: gone
  pid_t parent = 0;
  unsigned long flags = 0;   // kernel flags PF_*
  double cpu_seconds = 0;    // all threads
  double start_seconds = 0;  // since the machine booted
  std::uint64_t resident_bytes = 0;
};

// Whether a signal (SIGSTOP, Ctrl-Z) stopped the process.  A debugger's stop does not count.
inline bool is_stopped(const ProcessStat& stat) noexcept { return stat.state == 'T'; }

// nullopt: there is no such process.
inline std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const std::string text = text_of_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t behind = text.rfind(')');  // the name may contain anything, even ')'
  if (behind == std::string::npos) return std::nullopt;
  std::istringstream in(text.substr(behind + 1));
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  // proc(5) numbers fields from 1; the first one after the name is 3.
  const auto field = [&words](std::size_t number) -> const std::string& {
    return words[number - 3];
  };
  constexpr std::size_t kLast = 24;
  if (words.size() <= kLast - 3) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessStat stat;
  stat.state = field(3)[0];
  stat.parent = static_cast<pid_t>(std::stol(field(4)));
  stat.flags = std::stoul(field(9));
  stat.cpu_seconds = static_cast<double>(std::stoull(field(14)) + std::stoull(field(15))) / ticks;
  stat.start_seconds = static_cast<double>(std::stoull(field(22))) / ticks;
  stat.resident_bytes =
      std::stoull(field(24)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return stat;
}

}  // namespace crane
