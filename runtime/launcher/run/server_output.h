// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the servers of a group print, passed on once.
//
// The servers write the same bytes, each into its own log.  Passed on is what the fastest one
// wrote: so every byte appears once, whichever replica dies (SHOWN-1).
//
// Threads: one.
// INVARIANT SHOWN-1  A byte of the servers' output is passed on exactly once, when the first
//                    replica has written it.

#include <cstdint>
#include <map>
#include <string>

namespace crane::launcher {

class ServerOutput {
 public:
  // `to`: where it goes; a descriptor of the caller's.
  explicit ServerOutput(int to) : to_(to) {}
  ~ServerOutput();
  ServerOutput(const ServerOutput&) = delete;
  ServerOutput& operator=(const ServerOutput&) = delete;

  // Before watch(): from then on fd() is readable when a server has written.
  void open();
  int fd() const noexcept { return changes_; }
  // A node of this replica was started: its server writes to `log`, which is made if it is not
  // there.
  void watch(int replica, const std::string& log);
  // The same for one whose output another process has shown, as far as there is any.
  void take_over(int replica, const std::string& log);
  // Passes on what there is, as far as the reader takes it without making us wait: it may be
  // stopped.
  void show();
  // It has not taken all: show() again when `to` is writable.
  bool waits() const noexcept { return waits_; }

 private:
  const int to_;
  int changes_ = -1;         // inotify on the logs
  std::map<int, int> logs_;  // replica -> its log, read
  std::uint64_t shown_ = 0;  // bytes that were passed on
  bool waits_ = false;
};

}  // namespace crane::launcher
