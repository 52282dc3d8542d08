// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names in /dev/pts: the program uses the agreed number of a terminal, the kernel its own.
//
// Threads: REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::terminal {

inline constexpr std::size_t kNameBytes = 24;  // "/dev/pts/" and a number

// Returns the number at the end of a path in /dev/pts; false: another path.
bool parse_name(const char* path, std::uint32_t& number) noexcept;
// Returns our terminal of this name; 0 = none.
std::uint16_t find_named(const dmt::Layout& w, const char* path) noexcept;
// Whether the number must be hidden: the kernel uses it for a terminal of ours, or the master is
// closed.
bool is_hidden(const dmt::Layout& w, std::uint32_t number) noexcept;
void write_name(char (&out)[kNameBytes], std::uint32_t number) noexcept;

// The kernel's path for the program's `path`; unchanged when it does not name a terminal.
class KernelPath {
 public:
  KernelPath(const dmt::Layout& w, const char* path) noexcept;
  const char* get() const noexcept { return path_; }

 private:
  const char* path_;
  char name_[kNameBytes];
};

// `name` has room for `room` bytes and contains readlink's result of `size` bytes. Replaces the
// kernel's name of a terminal of ours by the agreed one. Returns the new size.
std::size_t translate_link(const dmt::Layout& w, char* name, std::size_t size,
                           std::size_t room) noexcept;

}  // namespace crane::terminal
