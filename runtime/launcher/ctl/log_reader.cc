// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace crane::launcher {
namespace {

constexpr std::size_t kPartBytes = 64 << 10;

// The length of the hole at this place, of which `known` bytes are zero.
std::uint64_t hole_at(int fd, std::uint64_t position, std::uint64_t known) {
  const off_t data = lseek(fd, static_cast<off_t>(position), SEEK_DATA);
  return std::max(known, data < 0 ? 0 : static_cast<std::uint64_t>(data) - position);
}

}  // namespace

LogReader::LogReader(const std::vector<std::string>& paths) {
  for (const auto& path : paths) logs_.emplace_back().path = path;
  reopen();
}

LogReader::~LogReader() {
  for (const Log& log : logs_) {
    if (log.fd >= 0) close(log.fd);
  }
}

// Opens files that are new at their paths.  A file that was removed stays open, because its last
// bytes may not have been read.
void LogReader::reopen() {
  bool any_fresh = false, others = false;
  for (Log& log : logs_) {
    struct stat there {};
    const bool exists = stat(log.path.c_str(), &there) == 0;
    const bool same = log.fd >= 0 && log.device == there.st_dev && log.inode == there.st_ino;
    if (exists && !same) {
      const int fd = open(log.path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      if (log.fd >= 0) close(log.fd);
      log = {log.path, fd, there.st_dev, there.st_ino, true};
    }
    any_fresh = any_fresh || log.fresh;
    others = others || (exists && !log.fresh);
  }
  if (!any_fresh || others) return;
  const bool goes_on = std::any_of(logs_.begin(), logs_.end(), [this](const Log& log) {
    struct stat file {};
    return log.fresh && fstat(log.fd, &file) == 0 &&
           static_cast<std::uint64_t>(file.st_size) >= position_;
  });
  for (Log& log : logs_) {
    if (!goes_on && !log.fresh && log.fd >= 0) close(std::exchange(log.fd, -1));
    log.fresh = false;
  }
  if (!goes_on) position_ = 0;
}

std::string LogReader::next() {
  for (;;) {
    std::string text(kPartBytes, 0);
    std::uint64_t hole = 0;  // the smallest one at this position; 0: no log has bytes here
    for (const Log& log : logs_) {
      const ssize_t got =
          log.fd >= 0 ? pread(log.fd, text.data(), text.size(), static_cast<off_t>(position_)) : 0;
      if (got <= 0) continue;
      const auto bytes = static_cast<std::size_t>(got);
      const std::size_t zeros = std::min(text.find_first_not_of('\0'), bytes);
      if (zeros > 0) {  // another log may have these bytes
        const std::uint64_t here = zeros < bytes ? zeros : hole_at(log.fd, position_, bytes);
        hole = hole == 0 ? here : std::min(hole, here);
        continue;
      }
      position_ += bytes;
      text.resize(bytes);
      return text;
    }
    if (hole == 0) return {};
    position_ += hole;
    missing_ += hole;
  }
}

std::string LogReader::read() {
  std::string text = next();  // first the rest of a file that was replaced
  if (!text.empty()) return text;
  reopen();
  return next();
}

void LogReader::skip() {
  for (const Log& log : logs_) {
    struct stat file {};
    if (log.fd < 0 || fstat(log.fd, &file) != 0) continue;
    position_ = std::max(position_, static_cast<std::uint64_t>(file.st_size));
  }
}

}  // namespace crane::launcher
