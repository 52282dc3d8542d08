// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server writes where nothing lasts (--data): said when it begins, and at the end how much
// it was.
//
// The upper directory of a server's overlay holds all that it wrote of the machine's file system.
// It is watched (inotify) until the first file appears there, and looked through at the end; so a
// server that only serves costs nothing.  /run, /tmp, /var/tmp, /var/log, /var/cache and what these
// are linked to are where a server may write what it can do without.
//
// Threads: one.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/launcher/options.h"

namespace crane::launcher {

class Unsaved {
 public:
  explicit Unsaved(const Options& options);
  ~Unsaved();
  Unsaved(const Unsaved&) = delete;
  Unsaved& operator=(const Unsaved&) = delete;

  // The server whose files are in `upper` runs.  One of them is enough: they write the same.
  void begin(const std::string& upper);
  // Readable when look() has something to do; -1: never.
  int fd() const { return fd_; }
  void look();
  // When the servers have ended, whose replicas' directories are in `dir`.
  void end(const std::string& dir, int places) const;

 private:
  struct Written {
    std::uint64_t files = 0, bytes = 0;
    std::string first;                            // a path, as the server sees it
    std::map<std::string, std::uint64_t> places;  // files per directory
  };
  bool lasts(const std::string& path) const;
  // `watch` >= 0: stops at the first file, and watches each directory that it comes through.
  Written look_through(const std::string& upper, int watch) const;

  const bool wanted_;
  std::vector<std::string> kept_;  // directories that last, or need not
  std::string upper_;
  int fd_ = -1;
};

}  // namespace crane::launcher
