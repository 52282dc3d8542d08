// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the program's memory can be accessed, for calls that Crane handles: the kernel returns
// EFAULT for bad memory, and programs use this to test it (a stack unwinder with an arbitrary
// address).
//
// Threads: any. Another thread may unmap the memory during a call, which is a fault.

#include <cstddef>

namespace crane {

// Tests each page; true for zero bytes.
bool is_readable(const void* memory, std::size_t bytes) noexcept;
bool is_writable(const void* memory, std::size_t bytes) noexcept;

// Called by the handler of SIGSEGV and SIGBUS. True: a test has faulted, and continues with the
// result false. False: another fault.
bool handle_look(void* context) noexcept;

}  // namespace crane
