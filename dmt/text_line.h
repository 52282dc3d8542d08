// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text for messages about a segment, in the caller's buffer: cut to fit, terminated by a 0.
//
// Threads: plain values.

#include <cstdint>
#include <cstring>
#include <span>

#include "dmt/layout.h"

namespace crane::dmt {

class TextLine {
 public:
  explicit TextLine(std::span<char> out) noexcept : out_(out) {
    if (!out_.empty()) out_[0] = '\0';
  }
  TextLine& operator<<(const char* text) noexcept {
    for (; *text != '\0' && size_ + 1 < out_.size(); ++text) out_[size_++] = *text;
    if (size_ < out_.size()) out_[size_] = '\0';
    return *this;
  }
  TextLine& operator<<(std::uint64_t number) noexcept {
    char digits[24];
    char* at = digits + sizeof digits - 1;
    *at = '\0';
    do {
      *--at = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << at;
  }
  TextLine& hex(std::uint64_t number) noexcept {
    char digits[20];
    char* at = digits + sizeof digits - 1;
    *at = '\0';
    do {
      *--at = "0123456789abcdef"[number % 16];
      number /= 16;
    } while (number != 0);
    return *this << "0x" << at;
  }

 private:
  std::span<char> out_;
  std::size_t size_ = 0;
};

// The operation's name that the server's library has published, or null.
inline const char* operation_name(const Layout& w, std::uint32_t operation) noexcept {
  const char* name = w.operation_names;
  const char* const end = name + sizeof w.operation_names;
  for (; operation > 0 && name < end && *name != '\0'; --operation) name += std::strlen(name) + 1;
  return name < end && *name != '\0' ? name : nullptr;
}

}  // namespace crane::dmt
