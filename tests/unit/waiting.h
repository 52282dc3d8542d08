// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests that watch other processes: asking again until something holds, reading what they
// wrote.

#include <poll.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

namespace crane::test {

// False when it did not come to hold within `limit_ms`.
inline bool eventually(const std::function<bool()>& condition, int limit_ms) {
  for (int waited = 0; waited < limit_ms; waited += 5) {
    if (condition()) return true;
    poll(nullptr, 0, 5);  // poll
  }
  return false;
}

// All of a file; empty when it cannot be read.
inline std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace crane::test
