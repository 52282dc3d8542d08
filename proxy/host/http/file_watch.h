// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether files have changed since they were read, by what stat(2) tells: a renewed certificate, an
// edited file of users.
//
// Threads: one object, one thread.

#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

namespace crane::node {

class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // True at the first call, and when the files have changed and are then the same as at the call
  // before: a program that renews a certificate and its key may be between the two.
  bool changed() {
    std::vector<Stamp> now;
    for (const std::string& path : paths_) now.push_back(stamp_of(path));
    const bool same = now == seen_;
    seen_ = std::move(now);
    if (!same) pending_ = true;
    const bool due = pending_ && (same || !began_);
    if (due) pending_ = false;
    began_ = true;
    return due;
  }

 private:
  struct Stamp {
    ino_t file = 0;
    off_t bytes = -1;                             // -1: there is no file
    std::pair<time_t, long> content, attributes;  // when they changed
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return {};
    return {info.st_ino,
            info.st_size,
            {info.st_mtim.tv_sec, info.st_mtim.tv_nsec},
            {info.st_ctim.tv_sec, info.st_ctim.tv_nsec}};
  }

  const std::vector<std::string> paths_;
  std::vector<Stamp> seen_;
  bool began_ = false, pending_ = false;
};

}  // namespace crane::node
