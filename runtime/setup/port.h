// SPDX-License-Identifier: Apache-2.0
#pragma once
// A TCP port as users write it.
//
// Threads: pure functions.

#include <charconv>
#include <cstdint>
#include <string>

namespace crane::setup {

// Parses 1 to 65535, only digits.  Returns false for any other text.
inline bool parse_port(const std::string& text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && at == end && port != 0;
}

}  // namespace crane::setup
