// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares paths as text; accesses no file.
//
// Threads: pure function.

#include <string_view>

namespace crane {

// Returns the part of `path` below `directory`, without a leading slash.  Returns "" if `path` is
// not below it or contains a ".." that might lead out of it.
constexpr std::string_view path_below(std::string_view directory, std::string_view path) noexcept {
  while (!directory.empty() && directory.back() == '/') directory.remove_suffix(1);
  if (directory.empty() || !path.starts_with(directory)) return {};
  path.remove_prefix(directory.size());
  if (!path.starts_with('/')) return {};
  while (path.starts_with('/')) path.remove_prefix(1);
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('/'));
    if (word == "..") return {};
    rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : word.size());
  }
  return path;
}

}  // namespace crane
