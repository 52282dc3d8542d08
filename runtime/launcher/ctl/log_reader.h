// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the growing logs of a group for `crane-ctl logs` and `attach`.
//
// The servers of a group write the same bytes at the same offsets, each to its own server.log.  A
// replica that recovers truncates its log and writes again; before the checkpoint that it begins
// at, its log is a hole, and so are bytes that were discarded (proxy/host/log_bounds.h).  So one
// offset is the position in all of them, and any log that has the next bytes can supply them.
//
// Threads: one.
// INVARIANT LOGS-1  A reader gets each byte of a log once, also if the file is replaced or removed,
//                   and if the replica that supplied it is lost.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace crane::launcher {

class LogReader {
 public:
  // The paths of logs with equal content, the preferred one first; files may be missing.
  explicit LogReader(const std::vector<std::string>& paths);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Reads the next bytes, at most 64 KiB; empty: there are none now.
  // If all files were replaced by shorter ones, another group writes them: begins at their start.
  std::string read();
  // How many bytes no log had (any more) where read() continued; then 0.
  std::uint64_t take_missing() { return std::exchange(missing_, 0); }
  // Skips everything that is there now.
  void skip();

 private:
  struct Log {
    std::string path;
    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
    bool fresh = false;  // opened since the position was 0, in place of another file
  };
  std::string next();
  void reopen();

  std::vector<Log> logs_;
  std::uint64_t position_ = 0, missing_ = 0;
};

}  // namespace crane::launcher
