// SPDX-License-Identifier: Apache-2.0
#include "dmt/socket_directories.h"

#include <cstring>

#include "dmt/base/path_below.h"

namespace crane::dmt {

bool add_socket_directory(Layout& w, std::string_view directory) noexcept {
  std::size_t at = 0;
  while (w.socket_directories[at] != '\0') at += std::strlen(w.socket_directories + at) + 1;
  if (at + directory.size() + 2 > sizeof w.socket_directories) return false;
  std::memcpy(w.socket_directories + at, directory.data(), directory.size());
  return true;
}

bool is_in_socket_directory(const Layout& w, std::string_view path) noexcept {
  for (const char* one = w.socket_directories; *one != '\0'; one += std::strlen(one) + 1) {
    if (!path_below(one, path).empty()) return true;
  }
  return false;
}

}  // namespace crane::dmt
