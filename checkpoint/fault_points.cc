// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fault_points.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

namespace crane::checkpoint {
namespace {

const char* chosen = nullptr;
long passes_left = 0;
std::string told_in;

void die_when_chosen(const char* name) {
  if (std::string(name) == chosen && --passes_left == 0) ::kill(::getpid(), SIGKILL);
}

void die_if_told(const char* name) {
  if (::unlink((told_in + "/" + name).c_str()) == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace

bool die_at(const char* spec) {
  const std::string text = spec;
  const auto colon = text.find(':');
  const long pass = colon == std::string::npos ? 1 : std::atol(text.c_str() + colon + 1);
  if (pass < 1) return false;
  const auto choose = [&](const char* name) {
    if (text.substr(0, colon) != name) return false;
    chosen = name;
    passes_left = pass;
    fault_hook = die_when_chosen;
    return true;
  };
  return std::any_of(kFaultPoints.begin(), kFaultPoints.end(), choose) ||
         std::any_of(kTransferFaultPoints.begin(), kTransferFaultPoints.end(), choose) ||
         std::any_of(kStateFaultPoints.begin(), kStateFaultPoints.end(), choose);
}

void die_at_marked_points(const std::string& directory) {
  told_in = directory;
  fault_hook = die_if_told;
}

}  // namespace crane::checkpoint
