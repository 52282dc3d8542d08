// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/machine.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "checkpoint/background.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

// Numbers of linux/capability.h, which are the bits that /proc shows.
struct Capability {
  int number;
  const char* name;
};
constexpr Capability kCapabilities[] = {{12, "CAP_NET_ADMIN"},
                                        {13, "CAP_NET_RAW"},
                                        {19, "CAP_SYS_PTRACE"},
                                        {21, "CAP_SYS_ADMIN"},
                                        {23, "CAP_SYS_NICE"}};
constexpr int kNotTried = 255;

// Runs `attempt` in a separate process, which it may spoil, and returns its errno (below 255).
int in_child(const std::function<int()>& attempt) {
  const pid_t child = fork();
  if (child == 0) _exit(attempt());
  if (child < 0) return errno;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kNotTried;
}

// A child that only waits until the destructor ends it.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  ~Waiting() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Does what libcrane.so does for its threads (runtime/preload/trap); the selector allows all calls.
int try_trap() {
  constexpr int kSetDispatch = 59, kDispatchOn = 1;  // PR_SET_SYSCALL_USER_DISPATCH
  static volatile char selector = 0;
  return prctl(kSetDispatch, kDispatchOn, 0UL, 0UL, &selector) == 0 ? 0 : errno;
}

int try_fixed_addresses() { return personality(ADDR_NO_RANDOMIZE) >= 0 ? 0 : errno; }

// Takes a descriptor as a new leader takes the old leader's: neither process is the other's parent.
int try_take() {
  const Waiting holder;
  return in_child([&holder] {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, holder.pid(), 0));
    return pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0 ? 0 : errno;
  });
}

std::uint64_t effective_capabilities() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) return std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  return 0;
}

std::optional<std::uint64_t> bound(rlim_t limit) {
  if (limit == RLIM_INFINITY) return {};
  return limit;
}

// Returns the number of processors that this process's version 2 control group allows, or `all` if
// it has no limit.
int processors_of_group(int all) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    std::istringstream limit(first_line("/sys/fs/cgroup" + line.substr(3) + "/cpu.max"));
    double quota_us = 0, period_us = 0;  // "max 100000": no limit
    if (limit >> quota_us >> period_us && period_us > 0) {
      return std::max(1, static_cast<int>(quota_us / period_us));
    }
  }
  return all;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

Privileges look_at_privileges() {
  Privileges found;
  found.root = setup::check_root();
  const std::uint64_t effective = effective_capabilities();
  for (const Capability& one : kCapabilities) {
    if ((effective >> one.number & 1) == 0) found.lacks.emplace_back(one.name);
  }
  return found;
}

Kernel look_at_kernel() {
  Kernel kernel;
  utsname about{};
  if (uname(&about) == 0) kernel.release = about.release;
  (void)std::sscanf(kernel.release.c_str(), "%d.%d", &kernel.major, &kernel.minor);
  kernel.trap_error = in_child(try_trap);
  kernel.addresses_error = in_child(try_fixed_addresses);
  kernel.take_error = try_take();
  return kernel;
}

ControlGroups look_at_control_groups() {
  ControlGroups found;
  const std::string unified = first_line("/sys/fs/cgroup/cgroup.controllers");
  std::istringstream words(unified);
  for (std::string word; words >> word;) found.controllers.push_back(word);
  if (!unified.empty()) {
    found.version = 2;
  } else {
    // "cpu  3  12  1": name, hierarchy, groups, whether it is enabled.
    std::ifstream table("/proc/cgroups");
    for (std::string line; std::getline(table, line);) {
      std::istringstream row(line);
      std::string controller;
      int hierarchy = 0;
      if (row >> controller >> hierarchy && controller[0] != '#' && hierarchy != 0) {
        found.controllers.push_back(controller);
      }
    }
    found.version = found.controllers.empty() ? 0 : 1;
  }
  const Waiting process;
  using checkpoint::Background;
  Background background;
  found.weighs = process.pid() > 0 && background.enter(process.pid(), Background::kUsual);
  if (found.weighs) (void)background.leave(process.pid());
  return found;
}

int usable_processors() {
  cpu_set_t set;
  const int bound_to = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::min(bound_to, processors_of_group(bound_to));
}

// Nodes raise their limit of descriptors to the hard limit, and leave that of locked memory.
Limits look_at_limits() {
  Limits limits;
  constexpr int kLockMemory = 14;  // CAP_IPC_LOCK, for which the limit does not count
  rlimit locked{}, files{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 &&
      (effective_capabilities() >> kLockMemory & 1) == 0) {
    limits.locked_bytes = bound(locked.rlim_cur);
  }
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) limits.descriptors = bound(files.rlim_max);
  return limits;
}

Clock look_at_clock() {
  Clock clock;
  timex now{};
  const int state = adjtimex(&now);
  clock.synchronised = state >= 0 && state != TIME_ERROR && (now.status & STA_UNSYNC) == 0;
  clock.error_us = now.maxerror;
  clock.source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return clock;
}

}  // namespace crane::launcher
