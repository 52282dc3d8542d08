// SPDX-License-Identifier: Apache-2.0
#pragma once
// A word for a command line of the shell, whatever is in it.
//
// Pure.  Threads: any.  It allocates memory: no part of the preloaded library.

#include <string>

namespace crane {

inline std::string shell_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace crane
