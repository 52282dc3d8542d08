// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/orphans.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "checkpoint/background.h"
#include "dmt/base/read_text.h"

namespace crane::checkpoint {
namespace {

// Whether it is the first process of a container; all others in it end with it.
bool is_container_init(const std::string& process) {
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    int here = 0, inside = 0, further = 0;
    const int n = std::sscanf(line.c_str(), "NSpid: %d %d %d", &here, &inside, &further);
    if (n > 0) return n == 2 && inside == 1;
  }
  return false;
}

bool is_criu(const std::string& process, const std::string& directory) {
  const std::string words = text_of_file(process + "/cmdline");
  return words.find("--restore-sibling") != std::string::npos &&
         words.find(directory + "/") != std::string::npos;
}

// The process that made this directory; -1: not a CRIU with the shim.
pid_t maker_of_directory(const std::string& name) {
  constexpr std::string_view kFamilies[] = {".criu.", "cr-tmpfs.", "crtools-"};
  const auto begins = [&](std::string_view family) { return name.rfind(family, 0) == 0; };
  const auto dot = name.rfind('.');
  const bool ours = std::any_of(std::begin(kFamilies), std::end(kFamilies), begins) &&
                    name.size() - dot == 7 && name[dot + 1] == 'c' && name[dot + 2] >= 'r';
  if (!ours) return -1;
  pid_t pid = 0;
  for (const char c : name.substr(dot + 3)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                      : c >= 'a' && c <= 'z' ? c - 'a' + 36
                                             : -1;
    if (digit < 0) return -1;
    pid = pid * 62 + digit;
  }
  return pid;
}

}  // namespace

void remove_directories_of_criu() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp", none)) {
    const pid_t maker = maker_of_directory(entry.path().filename());
    if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) (void)::rmdir(entry.path().c_str());
  }
}

void remove_what_was_left() {
  remove_directories_of_criu();
  Background::remove_left();
}

void end_orphans(const std::string& directory) {
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (pid_t child = 0; children >> child;) {
    const std::string process = "/proc/" + std::to_string(child);
    if (is_container_init(process) || is_criu(process, directory)) ::kill(child, SIGKILL);
  }
}

}  // namespace crane::checkpoint
