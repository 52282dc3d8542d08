// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/http/surroundings.h"

#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "checkpoint/manifest.h"

namespace crane::node {
namespace {

// /proc/self/stat behind the name, which may hold anything: from field 3 on.
std::vector<std::string> own_stat() {
  std::ifstream file("/proc/self/stat");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t behind = text.rfind(')');
  if (behind == std::string::npos) return {};
  std::istringstream words(text.substr(behind + 1));
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

// What the kernel counts from its start.
double boot_unix_seconds() {
  timespec now{}, up{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  return static_cast<double>(now.tv_sec - up.tv_sec) +
         static_cast<double>(now.tv_nsec - up.tv_nsec) / 1e9;
}

}  // namespace

ProcessFacts own_process() {
  // Places in own_stat(): proc(5) numbers them from 3 on.
  constexpr std::size_t kUserTime = 14 - 3, kSystemTime = 15 - 3, kStart = 22 - 3, kPages = 24 - 3;
  ProcessFacts facts;
  const std::vector<std::string> stat = own_stat();
  if (stat.size() <= kPages) return facts;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto number = [&stat](std::size_t field) { return std::stod(stat[field]); };
  facts.cpu_seconds = (number(kUserTime) + number(kSystemTime)) / ticks;
  facts.start_unix_seconds = boot_unix_seconds() + number(kStart) / ticks;
  facts.resident_bytes =
      std::stoull(stat[kPages]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       !ignored && at != std::filesystem::directory_iterator(); at.increment(ignored)) {
    ++facts.open_descriptors;
  }
  return facts;
}

std::vector<FileSystem> file_systems_of(const Config& config) {
  std::vector<FileSystem> all;
  for (const auto& [holds, path] :
       {std::pair{"state", &config.dir}, std::pair{"memory", &config.shm_dir}}) {
    struct statvfs found {};
    if (::statvfs(path->c_str(), &found) != 0) continue;
    all.push_back({holds, *path, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize});
  }
  return all;
}

NewestCheckpoint newest_checkpoint(checkpoint::Newest& newest, const Config& config) {
  const std::string digest = checkpoint::digest_of_log(config.group, config.log_id);
  const checkpoint::Listed* const found = newest.look(config.dir, digest);
  if (found == nullptr) return {};
  return {value(found->manifest.at.index), found->manifest.time, found->bytes()};
}

}  // namespace crane::node
