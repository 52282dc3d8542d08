// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process's control group and weight, for tests of checkpoint/background.h and its users.

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/unit/waiting.h"

namespace crane::test {

// A process that waits until it is killed.
class PausedProcess {
 public:
  PausedProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~PausedProcess() { end(); }
  PausedProcess(const PausedProcess&) = delete;
  PausedProcess& operator=(const PausedProcess&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

inline std::string groups_of(pid_t pid) {
  return slurp("/proc/" + std::to_string(pid) + "/cgroup");
}

inline std::string group_of(pid_t pid) {
  for (const char* place : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
    const std::string group = place + std::string("/crane.background.") + std::to_string(pid);
    if (std::filesystem::exists(group + "/cgroup.procs")) return group;
  }
  return "";
}
// The process's weight in percent of the default; 0: it is in no such group.
inline unsigned weight_of(pid_t pid) {
  const std::string line = ":/crane.background." + std::to_string(pid) + "\n";
  const std::string shares = slurp(group_of(pid) + "/cpu.shares");  // version 1
  const std::string weight = slurp(group_of(pid) + "/cpu.weight");
  if (groups_of(pid).find(line) == std::string::npos) return 0;
  if (shares.empty()) return weight.empty() ? 0 : static_cast<unsigned>(std::stoul(weight));
  return static_cast<unsigned>((std::stoul(shares) * 100 + 512) / 1024);
}

// Whether this kernel and this machine permit such groups.
inline bool can_weigh() {
  for (const char* place : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
    const std::string group = place + std::string("/crane.test.") + std::to_string(::getpid());
    if (::mkdir(group.c_str(), 0755) != 0) continue;
    const bool can = ::access((group + "/cpu.shares").c_str(), W_OK) == 0 ||
                     ::access((group + "/cpu.weight").c_str(), W_OK) == 0;
    ::rmdir(group.c_str());
    if (can) return true;
  }
  WARN("no control group for the background here: skipped");
  return false;
}

}  // namespace crane::test
