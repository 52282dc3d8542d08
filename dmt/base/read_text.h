// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the text of a stream without an exception.  A read may fail after the file was opened: of a
// directory, from a bad disk, or below /proc/PID when that process ends.  An iterator over the
// buffer of the stream throws then, and so does a JSON parser that gets the stream, so
// tests/lint/tidy.py refuses both.
//
// Threads: any.  Allocates memory, so the preloaded library cannot use it.

#include <fstream>
#include <istream>
#include <string>

namespace crane {

// What is left of the stream.  in.bad(): a read failed, and the text may end too early.
inline std::string rest_of(std::istream& in) {
  std::string text;
  char part[4096];
  while (in.read(part, sizeof part) || in.gcount() > 0) {
    text.append(part, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

// Empty, or a part: the file cannot be read.
inline std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return rest_of(in);
}

}  // namespace crane
