// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace crane::checkpoint {
namespace {

constexpr const char* kOneForAll = "/sys/fs/cgroup";         // cgroups(7), version 2
constexpr const char* kOfProcessors = "/sys/fs/cgroup/cpu";  // version 1
constexpr const char* kPrefix = "crane.background.";
constexpr const char* kProcesses = "/cgroup.procs";
// A try fails when another process removes the group in between, as remove_left() does.
constexpr int kTriesMax = 64;
// The file with a group's weight, and its default value, in both versions.
struct Weight {
  const char* file;
  unsigned usual;
};
constexpr Weight kWeights[] = {{"/cpu.weight", 100}, {"/cpu.shares", 1024}};

bool is_split() { return ::access((std::string(kOfProcessors) + kProcesses).c_str(), F_OK) == 0; }

std::string root() { return is_split() ? kOfProcessors : kOneForAll; }

// The group's path below the root; a line is 4:cpu,cpuacct:/path, or 0::/path.
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

bool write_weight(int fd, unsigned usual, unsigned percent) noexcept {
  char text[16];
  const auto end = std::to_chars(text, text + sizeof text, usual * percent / Background::kUsual);
  return write_to(fd, {text, static_cast<std::size_t>(end.ptr - text)});
}

}  // namespace

Background::~Background() {
  if (weight_) (void)::rmdir(group_.c_str());
}

bool Background::enter(pid_t process, unsigned percent) {
  group_ = group_for(process);
  for (int i = 0; i < kTriesMax && !weight_; ++i) {
    if (::mkdir(group_.c_str(), 0755) != 0 && errno != EEXIST) return false;
    Descriptor weight;
    for (const Weight& words : kWeights) {
      weight = open_to_write(group_ + words.file);
      usual_ = words.usual;
      if (weight) break;
    }
    if (write_weight(weight.get(), usual_, percent) && move(process, group_)) {
      weight_ = std::move(weight);
    } else if (errno != ENOENT && errno != ENODEV) {
      break;
    }
  }
  if (!weight_) (void)::rmdir(group_.c_str());
  return entered();
}

bool Background::set(unsigned percent) const noexcept {
  return write_weight(weight_.get(), usual_, percent);
}

bool Background::leave(pid_t process) {
  return entered() && move(process, root() + group_of("self"));
}

void Background::lift(pid_t process) noexcept {
  for (const Weight& words : kWeights) {
    const Descriptor weight = open_to_write(group_for(process) + words.file);
    if (write_weight(weight.get(), words.usual, kUsual)) return;
  }
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
      (void)::rmdir(it->path().c_str());  // refused while a process is in it
    }
  }
}

}  // namespace crane::checkpoint
