// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers for tests that watch other processes: waiting for a condition, reading files.

#include <poll.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

namespace crane::test {

// Polls `condition`. Returns false if it did not become true within `limit_ms`.
inline bool eventually(const std::function<bool()>& condition, int limit_ms) {
  for (int waited = 0; waited < limit_ms; waited += 5) {
    if (condition()) return true;
    poll(nullptr, 0, 5);  // poll
  }
  return false;
}

// Returns the content of a file, or an empty string if the file cannot be read.
inline std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace crane::test
