// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forwards the output of a group's servers once.
//
// The servers write the same bytes, each to its own log.  This class forwards the output of the
// server that is furthest ahead, so every byte appears once, whichever replica dies (SHOWN-1).
//
// Threads: one.
// INVARIANT SHOWN-1  A byte of the servers' output is forwarded exactly once, when the first
//                    replica has written it, unless it was discarded before the reader took it;
//                    then take_missing() counts it.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace crane::launcher {

class ServerOutput {
 public:
  // `to`: the descriptor that receives the output; the caller owns it.
  explicit ServerOutput(int to) : to_(to) {}
  ~ServerOutput();
  ServerOutput(const ServerOutput&) = delete;
  ServerOutput& operator=(const ServerOutput&) = delete;

  // Call it before watch().  From then on, fd() is readable when a server has written.
  void open();
  int fd() const noexcept { return changes_; }
  // Reads the output of this replica's server from `log`, and creates the file if it is missing.
  // Call it whenever a node of the replica starts.
  void watch(int replica, const std::string& log);
  // Like watch(), but takes the present content of `log` as already shown by another process.
  void take_over(int replica, const std::string& log);
  // Forwards new output without blocking; a reader that is stopped may leave some of it.
  void show();
  // How many bytes were discarded from the logs (proxy/host/log_bounds.h) before the reader of the
  // output had taken them; then 0.
  std::uint64_t take_missing() noexcept { return std::exchange(missing_, 0); }
  // Output is left: call show() again when `to` is writable.
  bool waits() const noexcept { return waits_; }

 private:
  const int to_;
  int changes_ = -1;         // inotify on the logs
  std::map<int, int> logs_;  // replica -> descriptor of its log
  std::uint64_t shown_ = 0;  // bytes forwarded
  std::uint64_t missing_ = 0;
  bool waits_ = false;
};

}  // namespace crane::launcher
