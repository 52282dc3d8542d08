// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fault_points.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

namespace crane::checkpoint {
namespace {

const char* chosen_point = nullptr;
long passes_left = 0;
std::string directory_of_marks;

void kill_at_chosen_point(const char* name) {
  if (std::string(name) == chosen_point && --passes_left == 0) ::kill(::getpid(), SIGKILL);
}

void kill_at_marked_point(const char* name) {
  if (::unlink((directory_of_marks + "/" + name).c_str()) == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace

bool die_at(const char* spec) {
  const std::string text = spec;
  const auto colon = text.find(':');
  const long pass = colon == std::string::npos ? 1 : std::atol(text.c_str() + colon + 1);
  if (pass < 1) return false;
  const auto choose = [&](const char* name) {
    if (text.substr(0, colon) != name) return false;
    chosen_point = name;
    passes_left = pass;
    fault_hook = kill_at_chosen_point;
    return true;
  };
  return std::any_of(kFaultPoints.begin(), kFaultPoints.end(), choose) ||
         std::any_of(kTransferFaultPoints.begin(), kTransferFaultPoints.end(), choose) ||
         std::any_of(kStateFaultPoints.begin(), kStateFaultPoints.end(), choose);
}

void die_at_marked_points(const std::string& directory) {
  directory_of_marks = directory;
  fault_hook = kill_at_marked_point;
}

}  // namespace crane::checkpoint
