// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace crane::checkpoint {
namespace {

constexpr const char* kOneForAll = "/sys/fs/cgroup";         // cgroups(7), version 2
constexpr const char* kOfProcessors = "/sys/fs/cgroup/cpu";  // version 1
constexpr const char* kPrefix = "crane.background.";
constexpr const char* kProcesses = "/cgroup.procs";
// Each failed try means that somebody else removed it in between.
constexpr int kTriesMax = 16;

bool is_split() { return ::access((std::string(kOfProcessors) + kProcesses).c_str(), F_OK) == 0; }

std::string root() { return is_split() ? kOfProcessors : kOneForAll; }

// Below the root; a line is 4:cpu,cpuacct:/path, or 0::/path.
std::string group_of(const std::string& process) {
  const bool split = is_split();
  std::ifstream groups("/proc/" + process + "/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool ours = split ? controllers.find(",cpu,") != std::string::npos : controllers == ",,";
    if (ours) return line.substr(second + 1);
  }
  return "/";
}

bool write_to(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write_all(file.get(), text.data(), text.size());
}

}  // namespace

Background::~Background() {
  if (idle_) (void)::rmdir(group_.c_str());
}

bool Background::enter(pid_t process) {
  const std::string number = std::to_string(process);
  group_ = root() + "/" + kPrefix + number;
  for (int i = 0; i < kTriesMax && !idle_; ++i) {
    if (::mkdir(group_.c_str(), 0755) != 0 && errno != EEXIST) return false;
    Descriptor idle(::open((group_ + "/cpu.idle").c_str(), O_WRONLY | O_CLOEXEC));
    if (idle && write_all(idle.get(), "1", 1) && write_to(group_ + kProcesses, number)) {
      idle_ = std::move(idle);
    } else if (errno != ENOENT && errno != ENODEV) {
      break;
    }
  }
  if (!idle_) (void)::rmdir(group_.c_str());
  return static_cast<bool>(idle_);
}

bool Background::be_last(bool last) const noexcept {
  return idle_ && ::pwrite(idle_.get(), last ? "1" : "0", 1, 0) == 1;
}

bool Background::leave(pid_t process) {
  return idle_ && write_to(root() + group_of("self") + kProcesses, std::to_string(process));
}

bool Background::put_group_last(pid_t process) {
  const std::string group = group_of(std::to_string(process)), own = group_of("self");
  if ((own + "/").rfind(group == "/" ? group : group + "/", 0) == 0) return false;
  return write_to(root() + group + "/cpu.idle", "1");
}

void Background::remove_left() noexcept {
  std::error_code end;
  for (std::filesystem::directory_iterator it(root(), end), none; !end && it != none;
       it.increment(end)) {
    if (it->path().filename().native().rfind(kPrefix, 0) == 0) {
      (void)::rmdir(it->path().c_str());  // refused while somebody is in it
    }
  }
}

}  // namespace crane::checkpoint
