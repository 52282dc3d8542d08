// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether memory that a program names can be used, for calls that we answer ourselves: the kernel
// says EFAULT where it cannot, and programs ask so (a stack unwinder that has an address of which
// it knows nothing).
//
// Threads: as any memory; another one may take it away meanwhile, which is a fault.

#include <cstddef>

namespace crane {

// Each of its pages; nothing of no bytes.
bool is_readable(const void* memory, std::size_t bytes) noexcept;
bool is_writable(const void* memory, std::size_t bytes) noexcept;

// For the handler of SIGSEGV and SIGBUS.  True: such a look has faulted; it goes on and says no.
// False: the fault is another one.
bool handle_look(void* context) noexcept;

}  // namespace crane
