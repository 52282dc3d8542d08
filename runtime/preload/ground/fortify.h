// SPDX-License-Identifier: Apache-2.0
#pragma once
// What libc checks for programs that were compiled with _FORTIFY_SOURCE: their calls come with the
// size of the caller's buffer.  libc itself prints the message and ends the process, as natively.
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

// `call` of libc ends the process, because what it is given is wrong.
template <typename Call>
void end_in(Call&& call) noexcept {
  const OutsideCrane outside;
  (void)call();
}

}  // namespace crane::fortify
