// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/server_pids.h"

#include <fcntl.h>
#include <sched.h>
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

namespace crane::node {
namespace {

constexpr int kNotEntered = 99;

// The last number of NSpid: the pid in the innermost namespace.  0: no such process any more.
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

// The file is about the namespace of who opens it.
bool write_last_pid(std::uint32_t last) noexcept {
  char text[16];
  const int size = std::snprintf(text, sizeof text, "%u", last);
  const int fd = ::open(kLastPid, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text, static_cast<std::size_t>(size)) == size;
  if (fd >= 0) ::close(fd);
  return written;
}

// Runs `inside` in a process of the namespace of `first`, whose number it then gives back: the next
// one that the server makes gets it.  The status that it exited with is `inside`'s; -1: not run.
template <typename Inside>
int run_inside(pid_t first, Inside inside) {
  const std::string path = "/proc/" + std::to_string(first) + "/ns/pid";
  const pid_t outer = ::fork();
  if (outer == 0) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWPID) != 0) ::_exit(kNotEntered);
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(inside());
    int status = 0;
    const bool ran = inner > 0 && ::waitpid(inner, &status, 0) == inner && WIFEXITED(status);
    ::_exit(ran ? WEXITSTATUS(status) : kNotEntered);
  }
  int status = 0;
  if (outer < 0 || ::waitpid(outer, &status, 0) != outer || !WIFEXITED(status)) return kNotEntered;
  return WEXITSTATUS(status);
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
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("make a pipe");
  const int status = run_inside(first, [&ends] {
    const auto last = static_cast<std::uint32_t>(::getpid()) - 1;
    return write_last_pid(last) && ::write(ends[1], &last, sizeof last) == sizeof last ? 0 : 1;
  });
  ::close(ends[1]);
  std::uint32_t last = 0;
  const bool whole = ::read(ends[0], &last, sizeof last) == sizeof last;
  ::close(ends[0]);
  if (status != 0 || !whole) return Error{Code::kDenied, 0, "read the server's last pid"};
  return last;
}

Outcome set_last_pid(pid_t first, std::uint32_t last) {
  const int status = run_inside(first, [last] { return write_last_pid(last) ? 0 : 1; });
  if (status != 0) return Error{Code::kDenied, 0, "set the server's last pid"};
  return Done{};
}

}  // namespace crane::node
