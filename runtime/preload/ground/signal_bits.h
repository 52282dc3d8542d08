// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of signals in the kernel's form.

#include <csignal>
#include <cstdint>

namespace crane {

// Converts a sigset_t to the kernel's 64 bits.
inline std::uint64_t bits_of(const sigset_t& set) noexcept { return set.__val[0]; }
inline sigset_t set_of(std::uint64_t bits) noexcept {
  sigset_t set{};
  set.__val[0] = bits;
  return set;
}
inline std::uint64_t bit_of(int signo) noexcept { return 1ull << (signo - 1); }

}  // namespace crane
