// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/orphans.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

namespace crane::checkpoint {
namespace {

// The first process of a container: all others in it end with it.
bool is_first(const std::string& process) {
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    int here = 0, inside = 0, further = 0;
    const int n = std::sscanf(line.c_str(), "NSpid: %d %d %d", &here, &inside, &further);
    if (n > 0) return n == 2 && inside == 1;
  }
  return false;
}

bool is_criu(const std::string& process, const std::string& directory) {
  std::ifstream file(process + "/cmdline", std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return words.find("--restore-sibling") != std::string::npos &&
         words.find(directory + "/") != std::string::npos;
}

}  // namespace

void end_orphans(const std::string& directory) {
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (pid_t child = 0; children >> child;) {
    const std::string process = "/proc/" + std::to_string(child);
    if (is_first(process) || is_criu(process, directory)) ::kill(child, SIGKILL);
  }
}

}  // namespace crane::checkpoint
