// SPDX-License-Identifier: Apache-2.0
#pragma once
// Assertions that stay on in release builds and may run in a signal handler or inside another
// program: they allocate nothing and write one line with write(2).  A failed assertion is a bug of
// Crane.

namespace crane {

// Writes "crane: assertion failed: <expr>: <file>:<line>" to the message fd and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace crane

#define CRANE_ASSERT(expression)                      \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::crane::assertion_failed(#expression, __FILE__, __LINE__))
