// SPDX-License-Identifier: Apache-2.0
#pragma once
// libc's checks for programs that were compiled with _FORTIFY_SOURCE: their calls pass the size of
// the caller's buffer. libc itself prints the message and ends the process, as natively.
//
// Threads: any.

#include <cstddef>

#include "runtime/preload/ground/inside.h"

extern "C" [[noreturn]] void __chk_fail() noexcept;

namespace crane::fortify {

inline void check_room(std::size_t wanted, std::size_t room) noexcept {
  if (wanted <= room) return;
  const OutsideCrane outside;  // SIGABRT is the program's own
  __chk_fail();
}

// Makes a call of libc that ends the process, because its arguments are wrong.
template <typename Call>
void end_in(Call&& call) noexcept {
  const OutsideCrane outside;
  (void)call();
}

}  // namespace crane::fortify
