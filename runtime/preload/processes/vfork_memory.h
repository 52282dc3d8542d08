// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory that the child of vfork has in common with its parent.  The child is one of fork,
// because what libcrane.so knows of a process is in that process' memory.  So the child publishes
// what it has changed before each exec and at its end, and the parent, which is suspended until
// then, applies it.
//
// A process of one thread gets every page that its child has changed.  Where it has several
// threads, or has a seccomp filter, or where /proc cannot be read, it gets the bytes that the child
// has changed above the stack pointer of vfork's caller, and errno.
//
// What a child has changed is lost where it dies without an operation (SIGKILL of the kernel's),
// and so is memory that the child itself mapped.
//
// Threads: the one that calls vfork, and the only one of the child.

#include <cstdint>

namespace crane::vfork_memory {

// Shared by parent and child.
struct Exchange;

// In the parent, before the fork.  `stack`: the program's own frames begin there.  `whole`: the
// process has one thread.  Null: the kernel has no memory.
Exchange* create(std::uintptr_t stack, bool whole) noexcept;
void destroy(Exchange& x) noexcept;

// In a new child; null: it is one of fork and publishes nothing.
void begin_child(Exchange* x) noexcept;
// Before each exec and at the end of a process.
void publish() noexcept;

// In the parent, when the child has executed or ended.  Returns errno, which the caller sets last:
// the child's, or `otherwise` where it has published nothing.
int apply(const Exchange& x, int otherwise) noexcept;

}  // namespace crane::vfork_memory
