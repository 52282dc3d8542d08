// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/log_bounds.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "checkpoint/descriptor.h"

namespace crane::node {
namespace {

constexpr std::uint64_t kPage = 4096;  // only whole pages become a hole
constexpr std::uint64_t kBlock = 512;  // of st_blocks

}  // namespace

std::uint64_t to_discard(std::uint64_t size, std::uint64_t on_disk, std::uint64_t keep,
                         std::uint64_t most) noexcept {
  if (size <= most || on_disk <= most) return 0;
  return (size - keep) / kPage * kPage;
}

std::vector<std::string> logs_of(const Config& config) {
  return {config.replica_dir() + "/node.log", config.replica_dir() + "/server.log",
          config.replica_shm_dir() + "/runtime.log"};
}

LogBounds::LogBounds(const std::vector<std::string>& paths, std::uint64_t keep, std::uint64_t most)
    : keep_(keep), most_(most) {
  for (const std::string& path : paths) logs_.push_back({path});
}

void LogBounds::step(std::int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kEveryNs;
  for (Log& log : logs_) bound(log);
}

void LogBounds::bound(Log& log) const {
  struct stat found {};
  if (::stat(log.path.c_str(), &found) != 0) return;  // it does not exist yet
  const auto size = static_cast<std::uint64_t>(found.st_size);
  const auto discard =
      to_discard(size, static_cast<std::uint64_t>(found.st_blocks) * kBlock, keep_, most_);
  if (discard == 0) return;
  const checkpoint::Descriptor fd(::open(log.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (fd && ::fallocate(fd.get(), kHole, 0, static_cast<off_t>(discard)) == 0) {
    spdlog::info("{}: its first {} bytes are discarded: the last {} stay", log.path, discard,
                 size - discard);
  } else if (!std::exchange(log.complained, true)) {
    spdlog::warn("{}: its oldest bytes cannot be discarded ({}): it grows", log.path,
                 std::strerror(errno));
  }
}

std::string end_of_log(const std::string& path, std::uint64_t most) {
  const checkpoint::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) return "";
  const auto size = static_cast<std::uint64_t>(found.st_size);
  off_t at = static_cast<off_t>(size - std::min(size, most));
  if (const off_t data = ::lseek(fd.get(), at, SEEK_DATA); data > at) at = data;
  std::string text(static_cast<std::size_t>(found.st_size - at), 0);
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t n =
        ::pread(fd.get(), text.data() + read, text.size() - read, at + static_cast<off_t>(read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    read += static_cast<std::size_t>(n);
  }
  text.resize(read);
  return text;
}

}  // namespace crane::node
