// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interrupts of simulated branch counters (runtime/preload/turn/branch_counter.h).

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/preload/turn/branch_counter.h"

namespace crane::solo {

// A thread that waits where its interrupt is due gets it; now and then another thread gets it
// early, at any point.
class Interrupts {
 public:
  void send(const std::vector<pid_t>& processes) {
    for (const pid_t process : processes) {
      branches::SimulatedBranches all[branches::kSimulatedMax];
      iovec here{all, sizeof all};
      iovec there{reinterpret_cast<void*>(branches::kSimulatedAt), sizeof all};
      if (process_vm_readv(process, &here, 1, &there, 1, 0) != sizeof all) continue;
      for (const auto& one : all) {
        if (one.thread == 0) continue;
        if (one.count == one.gate || random_() % kOneIn == 0) interrupt(process, one.thread);
      }
    }
  }

 private:
  static constexpr unsigned kOneIn = 8;

  // The last of a thread's ids is the one in its own namespace.
  void interrupt(pid_t process, std::uint32_t thread) const {
    const std::string tasks = std::to_string(process) + "/task";
    DIR* all = fdopendir(openat(proc_, tasks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (all == nullptr) return;
    while (const dirent* one = readdir(all)) {
      if (one->d_name[0] == '.' || last_number(tasks + "/" + one->d_name) != thread) continue;
      syscall(SYS_tgkill, process, std::atoi(one->d_name), branches::kInterruptSignal);
    }
    closedir(all);
  }

  std::uint32_t last_number(const std::string& task) const {
    char text[4096];
    const int fd = openat(proc_, (task + "/status").c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size < 0 ? 0 : size] = '\0';
    const char* line = std::strstr(text, "\nNSpid:");
    if (line == nullptr) return 0;
    const std::string numbers(line + 1, std::strcspn(line + 1, "\n"));
    return static_cast<std::uint32_t>(std::atoi(numbers.c_str() + numbers.rfind('\t') + 1));
  }

  // /proc of this program's own namespace, opened before the server's is mounted over it.
  const int proc_ = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::mt19937 random_;
};

}  // namespace crane::solo
