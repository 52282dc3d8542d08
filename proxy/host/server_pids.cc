// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/server_pids.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// The last number of NSpid: the pid in the innermost namespace.  0: the process is gone.
std::uint32_t inner_pid(const std::filesystem::path& process) {
  std::ifstream in(process / "status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("NSpid:", 0) != 0) continue;
    std::istringstream numbers(line.substr(6));
    std::uint32_t pid = 0;
    while (numbers >> pid) {
    }
    return pid;
  }
  return 0;
}

constexpr const char* kLastPid = "/proc/sys/kernel/ns_last_pid";

// The file refers to the pid namespace of the process that opens it.
bool write_last_pid(std::uint32_t last) noexcept {
  char text[16];
  const int size = std::snprintf(text, sizeof text, "%u", last);
  const int fd = ::open(kLastPid, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text, static_cast<std::size_t>(size)) == size;
  if (fd >= 0) ::close(fd);
  return written;
}

struct Inside {
  std::uint32_t last;  // to be set; 0: to be read
  bool written;
};

// Runs as a process of the namespace on this process's memory: makes only system calls.
int inside(void* argument) {
  Inside& in = *static_cast<Inside*>(argument);
  if (in.last == 0) in.last = static_cast<std::uint32_t>(::getpid()) - 1;
  in.written = write_last_pid(in.last);
  ::_exit(0);
}

// Makes a child in the namespace of `first`.  The child's number is set back, so the server's next
// process gets it.  The child shares this process's memory, because a copy would take milliseconds
// in which the server is paused.
bool run_inside(pid_t first, Inside& in) {
  const int own = ::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  const int theirs =
      ::open(("/proc/" + std::to_string(first) + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a handler would run on shared memory
  pid_t child = -1;
  if (own >= 0 && theirs >= 0 && ::setns(theirs, CLONE_NEWPID) == 0) {
    alignas(16) char stack[16384];
    child = ::clone(inside, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &in);
    const int back = ::setns(own, CLONE_NEWPID);
    CRANE_ASSERT(back == 0);  // else later children would be in the server's namespace
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (own >= 0) ::close(own);
  if (theirs >= 0) ::close(theirs);
  return child > 0 && ::waitpid(child, nullptr, 0) == child && in.written;
}

std::uint64_t namespace_of(const std::filesystem::path& process) {
  struct stat info {};
  return ::stat((process / "ns/pid").c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

std::map<std::uint32_t, pid_t> server_pids(const dmt::Layout& w, pid_t first) {
  std::set<std::uint32_t> wanted;
  for (const dmt::ProcessRecord& p : w.processes) {
    if (p.state == dmt::ProcessState::kAlive && p.pid != 0) wanted.insert(p.pid);
  }
  std::map<std::uint32_t, pid_t> found;
  const std::uint64_t own = namespace_of("/proc/" + std::to_string(first));
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    char* end = nullptr;
    const std::string name = entry.path().filename();
    const long pid = std::strtol(name.c_str(), &end, 10);
    if (*end != '\0' || pid <= 0 || own == 0 || namespace_of(entry.path()) != own) continue;
    const std::uint32_t inner = inner_pid(entry.path());
    if (wanted.count(inner) != 0) found[inner] = static_cast<pid_t>(pid);
  }
  return found;
}

Result<std::uint32_t> last_pid(pid_t first) {
  Inside in{0, false};
  if (!run_inside(first, in)) return Error{Code::kDenied, 0, "read the server's last pid"};
  return in.last;
}

Outcome set_last_pid(pid_t first, std::uint32_t last) {
  Inside in{last, false};
  if (!run_inside(first, in)) return Error{Code::kDenied, 0, "set the server's last pid"};
  return Done{};
}

}  // namespace crane::node
