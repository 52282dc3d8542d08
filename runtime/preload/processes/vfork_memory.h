// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory that the child of vfork shares with its parent. The child is created by fork, because
// libcrane.so keeps the state of a process in the memory of that process. So the child publishes
// its changes before each exec and at its end, and the parent, which is suspended until then,
// applies them.
//
// A process with one thread gets every page that its child changed. If the process has several
// threads or a seccomp filter, or if /proc cannot be read, it gets only errno and the bytes that
// the child changed above the stack pointer of vfork's caller.
//
// Changes are lost if the child dies without an operation (the kernel's SIGKILL). Memory that the
// child itself mapped is lost, too.
//
// Threads: the thread that calls vfork, and the only thread of the child.

#include <cstdint>

namespace crane::vfork_memory {

// Shared by parent and child.
struct Exchange;

// Called in the parent before the fork. `stack`: where the program's own frames begin. `whole`: the
// process has one thread. Null: the kernel has no memory.
Exchange* create(std::uintptr_t stack, bool whole) noexcept;
void destroy(Exchange& x) noexcept;

// Called in a new child; null: the child is from fork and publishes nothing.
void begin_child(Exchange* x) noexcept;
// Called before each exec and at the end of a process.
void publish() noexcept;

// Called in the parent when the child has executed or ended. Returns errno, which the caller sets
// last: the child's, or `otherwise` if the child published nothing.
int apply(const Exchange& x, int otherwise) noexcept;

}  // namespace crane::vfork_memory
