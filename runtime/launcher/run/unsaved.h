// SPDX-License-Identifier: Apache-2.0
#pragma once
// Warns about files that the server writes outside of --data, which are lost with the group: names
// the first file when it appears, and reports the amount at the end.
//
// The upper directory of a server's overlay holds every file that the server wrote.  inotify
// watches it until the first file appears there, and it is searched again at the end.  A server
// that writes no files costs nothing.  Files in /run, /tmp, /var/tmp, /var/log, /var/cache and the
// targets of their links do not count, because a server can do without them.
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

  // Starts to watch `upper`, the directory of a server that runs.  Later calls do nothing, because
  // all servers write the same files.
  void begin(const std::string& upper);
  // Readable when look() has work; -1: never.
  int fd() const { return fd_; }
  void look();
  // Reports the lost files.  `dir` contains the replicas' directories.
  // REQUIRES: the servers have ended.
  void end(const std::string& dir, int places) const;

 private:
  struct Written {
    std::uint64_t files = 0, bytes = 0;
    std::string first;                            // the path that the server sees
    std::map<std::string, std::uint64_t> places;  // files per directory
  };
  bool lasts(const std::string& path) const;
  // `watch` >= 0: stops at the first file, and watches each directory on the way.
  Written look_through(const std::string& upper, int watch) const;

  const bool wanted_;
  std::vector<std::string> kept_;  // directories that are kept or may be lost
  std::string upper_;
  int fd_ = -1;
};

}  // namespace crane::launcher
