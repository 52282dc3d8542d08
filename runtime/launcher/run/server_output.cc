// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/server_output.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/setup/patient_write.h"

namespace crane::launcher {
namespace {

constexpr std::ptrdiff_t kPage = 4096;  // no shorter hole is made

}  // namespace

ServerOutput::~ServerOutput() {
  for (const auto& [replica, log] : logs_) {
    if (log >= 0) close(log);
  }
  if (changes_ >= 0) close(changes_);
}

void ServerOutput::open() { changes_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }

void ServerOutput::watch(int replica, const std::string& log) {
  const auto [where, fresh] = logs_.try_emplace(replica, -1);
  if (!fresh && where->second >= 0) close(where->second);
  where->second = ::open(log.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
  if (changes_ >= 0) inotify_add_watch(changes_, log.c_str(), IN_MODIFY);
}

void ServerOutput::take_over(int replica, const std::string& log) {
  watch(replica, log);
  struct stat file {};
  const int fd = logs_.at(replica);
  if (fd < 0 || fstat(fd, &file) != 0) return;
  shown_ = std::max(shown_, static_cast<std::uint64_t>(file.st_size));
}

void ServerOutput::show() {
  char buffer[16384];
  while (changes_ >= 0 && read(changes_, buffer, sizeof buffer) > 0) {
  }
  waits_ = false;
  for (const auto& [replica, log] : logs_) {
    ssize_t n = 0;
    while (log >= 0 &&
           (n = pread(log, buffer, sizeof buffer, static_cast<off_t>(shown_))) > 0) {  // SHOWN-1
      // The output before the checkpoint that a server began at is a hole in its log.
      const char* const text = std::find_if(buffer, buffer + n, [](char c) { return c != 0; });
      if (text - buffer >= kPage) missing_ += static_cast<std::uint64_t>(text - buffer);
      const ssize_t taken =
          setup::write_what_fits(to_, text, static_cast<std::size_t>(buffer + n - text));
      waits_ = taken < 0 ? errno == EAGAIN : text + taken < buffer + n;
      if (waits_) {
        shown_ += static_cast<std::uint64_t>(text + std::max<ssize_t>(taken, 0) - buffer);
        return;
      }
      shown_ += static_cast<std::uint64_t>(n);  // also if the reader is gone
    }
  }
}

}  // namespace crane::launcher
