// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quotes any word for a shell command line.
//
// Pure.  Threads: any.  Allocates memory, so the preloaded library cannot use it.

#include <string>

namespace crane {

inline std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace crane
