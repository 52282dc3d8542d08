// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/process_tree.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace crane::launcher {
namespace {

std::optional<ProcessUse> read_one(const std::string& directory) {
  std::ifstream file(directory + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t behind = text.rfind(')');  // the name before may hold anything
  if (behind == std::string::npos) return std::nullopt;
  std::istringstream in(text.substr(behind + 1));
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  // Places behind the name: proc(5) numbers fields from 3 on here.
  constexpr std::size_t kParent = 4 - 3, kUser = 14 - 3, kSystem = 15 - 3, kPages = 24 - 3;
  if (words.size() <= kPages) return std::nullopt;
  ProcessUse use;
  use.parent = static_cast<pid_t>(std::stol(words[kParent]));
  use.cpu_seconds = static_cast<double>(std::stoull(words[kUser]) + std::stoull(words[kSystem])) /
                    static_cast<double>(::sysconf(_SC_CLK_TCK));
  use.resident_bytes =
      std::stoull(words[kPages]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return use;
}

}  // namespace

Processes read_processes() {
  Processes all;
  std::error_code failure;
  for (auto at = std::filesystem::directory_iterator("/proc", failure);
       !failure && at != std::filesystem::directory_iterator(); at.increment(failure)) {
    const std::string name = at->path().filename();
    pid_t pid = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc{} || end != name.data() + name.size()) continue;
    if (const auto use = read_one(at->path())) all[pid] = *use;
  }
  return all;
}

ProcessUse tree_of(const Processes& all, pid_t pid) {
  ProcessUse sum;
  const auto own = all.find(pid);
  if (own == all.end()) return sum;
  sum = own->second;
  for (const auto& [child, use] : all) {
    if (use.parent != pid || child == pid) continue;
    const ProcessUse below = tree_of(all, child);
    sum.cpu_seconds += below.cpu_seconds;
    sum.resident_bytes += below.resident_bytes;
  }
  return sum;
}

}  // namespace crane::launcher
