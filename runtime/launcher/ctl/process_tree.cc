// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/process_tree.h"

#include <charconv>
#include <filesystem>
#include <string>

namespace crane::launcher {

Processes read_processes() {
  Processes all;
  std::error_code failure;
  for (auto at = std::filesystem::directory_iterator("/proc", failure);
       !failure && at != std::filesystem::directory_iterator(); at.increment(failure)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc{} || end != name.data() + name.size()) continue;
    if (const auto stat = read_process_stat(pid)) all[pid] = *stat;
  }
  return all;
}

ProcessStat tree_of(const Processes& all, pid_t pid) {
  ProcessStat sum;
  const auto own = all.find(pid);
  if (own == all.end()) return sum;
  sum = own->second;
  for (const auto& [child, use] : all) {
    if (use.parent != pid || child == pid) continue;
    const ProcessStat below = tree_of(all, child);
    sum.cpu_seconds += below.cpu_seconds;
    sum.resident_bytes += below.resident_bytes;
  }
  return sum;
}

}  // namespace crane::launcher
