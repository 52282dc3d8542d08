// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/stepper.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dmt/base/clock.h"

namespace crane::ticks {
namespace {

// Waits for the thread; true: it has stopped, with `status`.
bool await_stop(pid_t thread, int& status) {
  while (::waitpid(thread, &status, __WALL) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFSTOPPED(status);
}

// Whether the stop is the trap of a single step, and not another signal.
bool is_step(pid_t thread, int status) {
  siginfo_t info{};
  return WSTOPSIG(status) == SIGTRAP && (status >> 16) == 0 &&
         ::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0 && info.si_code != SI_KERNEL &&
         info.si_code > 0;
}

// Whether the next instruction is a system call.
bool is_at_call(pid_t thread, std::uint64_t address) {
  errno = 0;
  const long word = ::ptrace(PTRACE_PEEKTEXT, thread, address, nullptr);
  return errno != 0 || (word & 0xffff) == 0x050f;
}

}  // namespace

Stepping step_through(pid_t thread, std::size_t most, std::int64_t limit_ns) {
  Stepping result;
  const auto failed = [&result](const char* what) {
    result.why = fmt::format("{}: {}", what, std::strerror(errno));
    return result;
  };
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return failed("ptrace");
  int status = 0, signal = 0;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 || !await_stop(thread, status)) {
    return failed("ptrace, to interrupt it");
  }
  const std::int64_t until = monotonic_ns() + limit_ns;
  if ((status >> 16) != PTRACE_EVENT_STOP) signal = WSTOPSIG(status);
  while (signal == 0 && result.steps.size() < most && monotonic_ns() < until) {
    user_regs_struct registers{};
    if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) break;
    if (is_at_call(thread, registers.rip)) break;
    result.steps.push_back(registers.rip);
    if (::ptrace(PTRACE_SINGLESTEP, thread, nullptr, nullptr) != 0) break;
    if (!await_stop(thread, status)) return result;  // it has ended
    if (!is_step(thread, status) && (status >> 16) == 0) signal = WSTOPSIG(status);
  }
  ::ptrace(PTRACE_DETACH, thread, nullptr, signal);
  return result;
}

pid_t thread_by_inner_number(pid_t process, std::uint32_t number) {
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), failed)) {
    std::ifstream text(entry.path() / "status");
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("NSpid:")) continue;
      const std::string last = line.substr(line.find_last_of(" \t") + 1);
      if (last == std::to_string(number)) return std::stoi(entry.path().filename());
    }
  }
  return 0;
}

}  // namespace crane::ticks
