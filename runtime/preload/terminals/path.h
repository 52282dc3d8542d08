// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names in /dev/pts: of ours by their agreed number, for the kernel by its own.
//
// Threads: REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::terminal {

inline constexpr std::size_t kNameBytes = 24;  // "/dev/pts/" and a number

// The number that a path in /dev/pts ends with; false: it is no such path.
bool parse_name(const char* path, std::uint32_t& number) noexcept;
// The terminal of ours that the program calls so; 0 = none.
std::uint16_t find_named(const dmt::Layout& w, const char* path) noexcept;
// Not the name of one of ours, but in use: by the kernel's number of ours, or the master is closed.
bool is_hidden(const dmt::Layout& w, std::uint32_t number) noexcept;
void write_name(char (&out)[kNameBytes], std::uint32_t number) noexcept;

// The path for the kernel, of what the program calls `path`: as given when it is no terminal's.
class KernelPath {
 public:
  KernelPath(const dmt::Layout& w, const char* path) noexcept;
  const char* get() const noexcept { return path_; }

 private:
  const char* path_;
  char name_[kNameBytes];
};

// What readlink has found in `size` bytes of `name`, of which there is room for `room`: the
// kernel's name of a terminal of ours becomes ours.  The new size.
std::size_t translate_link(const dmt::Layout& w, char* name, std::size_t size,
                           std::size_t room) noexcept;

}  // namespace crane::terminal
