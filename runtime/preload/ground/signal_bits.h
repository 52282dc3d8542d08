// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of signals as the kernel has them.

#include <csignal>
#include <cstdint>

namespace crane {

// sigset_t as the 64 bits of the kernel.
inline std::uint64_t bits_of(const sigset_t& set) noexcept { return set.__val[0]; }
inline sigset_t set_of(std::uint64_t bits) noexcept {
  sigset_t set{};
  set.__val[0] = bits;
  return set;
}
inline std::uint64_t bit_of(int signo) noexcept { return 1ull << (signo - 1); }

}  // namespace crane
