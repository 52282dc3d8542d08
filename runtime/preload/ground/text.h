// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text without libc's printf, which allocates.
//
// Threads: any; these functions do not touch errno.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dmt/base/raw.h"

namespace crane {

// Writes `value` in decimal after `prefix`, and a terminating 0. `out` has room for it.
inline void print_number(const char* prefix, std::uint64_t value, char* out) noexcept {
  std::size_t n = std::strlen(prefix);
  std::memcpy(out, prefix, n);
  char digits[20];
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) out[n++] = digits[--count];
  out[n] = '\0';
}

// Parses a decimal number of at most nine digits. Returns the position after it: `text` itself if
// there is no digit.
inline const char* parse_number(const char* text, std::uint32_t& value) noexcept {
  constexpr int kDigitsMost = 9;
  const char* end = text;
  value = 0;
  for (; *end >= '0' && *end <= '9' && end - text < kDigitsMost; ++end) {
    value = value * 10 + static_cast<std::uint32_t>(*end - '0');
  }
  return end;
}

inline bool begins_with(const char* text, const char* beginning) noexcept {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

// The path of a process' `file` below /proc; `file` begins with a slash and is short.
struct ProcessFile {
  ProcessFile(std::uint32_t pid, const char* file) noexcept {
    print_number("/proc/", pid, path);
    std::strcat(path, file);
  }
  char path[32];
};

inline constexpr char kDescriptorLinks[] = "/proc/self/fd/";

// Reads the descriptor's link without a terminating 0: its size, or a negative error number.
inline long read_link_of(unsigned fd, char* out, std::size_t room) noexcept {
  char link[sizeof kDescriptorLinks + 12];
  print_number(kDescriptorLinks, fd, link);
  return raw_syscall(SYS_readlink, link, out, room);
}

}  // namespace crane
