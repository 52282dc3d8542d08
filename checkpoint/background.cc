// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace crane::checkpoint {
namespace {

constexpr const char* kOneForAll = "/sys/fs/cgroup";         // cgroups(7), version 2
constexpr const char* kOfProcessors = "/sys/fs/cgroup/cpu";  // version 1
constexpr const char* kPrefix = "crane.background.";
constexpr const char* kProcesses = "/cgroup.procs";
// A failed try means that somebody else removed it in between, or that the kernel knows no
// cpu.idle: while a group is being removed, both look alike.
constexpr int kTriesMax = 64;
// What nice(2) 19 weighs, in the words of either version.
struct Weight {
  const char *file, *text;
};
constexpr Weight kLittle[] = {{"/cpu.weight.nice", "19"}, {"/cpu.shares", "15"}};

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

Descriptor open_to_write(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
}

bool write_to(int fd, std::string_view text) noexcept {
  return fd >= 0 && ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

bool move(pid_t process, const std::string& group) {
  return write_to(open_to_write(group + kProcesses).get(), std::to_string(process));
}

std::string group_for(pid_t process) { return root() + "/" + kPrefix + std::to_string(process); }

}  // namespace

Background::~Background() {
  if (idle_) (void)::rmdir(group_.c_str());
}

bool Background::enter(pid_t process) {
  group_ = group_for(process);
  for (int i = 0; i < kTriesMax && !idle_; ++i) {
    if (::mkdir(group_.c_str(), 0755) != 0 && errno != EEXIST) return false;
    Descriptor idle = open_to_write(group_ + "/cpu.idle");
    if (write_to(idle.get(), "1") && move(process, group_)) {
      idle_ = std::move(idle);
    } else if (errno != ENOENT && errno != ENODEV) {
      break;
    }
  }
  if (!idle_) return ::rmdir(group_.c_str()), false;
  for (const Weight& weight : kLittle) {
    weight_ = open_to_write(group_ + weight.file);
    little_ = weight.text;
    if (weight_) break;
  }
  return true;
}

bool Background::set(Share share) const noexcept {
  if (share == Share::kLeft) return write_to(idle_.get(), "1");
  if (!write_to(idle_.get(), "0")) return false;  // with which it weighs as much as any
  return share == Share::kUsual || write_to(weight_.get(), little_);
}

bool Background::leave(pid_t process) { return idle_ && move(process, root() + group_of("self")); }

void Background::lift(pid_t process) noexcept {
  (void)write_to(open_to_write(group_for(process) + "/cpu.idle").get(), "0");
}

bool Background::set_group(pid_t process, bool left) {
  const std::string group = group_of(std::to_string(process)), own = group_of("self");
  if ((own + "/").rfind(group == "/" ? group : group + "/", 0) == 0) return false;
  return write_to(open_to_write(root() + group + "/cpu.idle").get(), left ? "1" : "0");
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
