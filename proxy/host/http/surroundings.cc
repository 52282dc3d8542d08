// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/surroundings.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "checkpoint/manifest.h"
#include "dmt/base/clock.h"
#include "dmt/base/process_stat.h"

namespace crane::node {
namespace {

// The time that the kernel's counters start from.
double boot_unix_seconds() {
  return static_cast<double>(realtime_ns() - clock_ns(CLOCK_BOOTTIME)) / 1e9;
}

}  // namespace

ProcessFacts own_process() {
  ProcessFacts facts;
  const auto stat = read_process_stat(::getpid());
  if (!stat) return facts;
  facts.cpu_seconds = stat->cpu_seconds;
  facts.start_unix_seconds = boot_unix_seconds() + stat->start_seconds;
  facts.resident_bytes = stat->resident_bytes;
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
