// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs that put themselves into a seccomp sandbox. The kernel applies the program's filter plus
// our own calls (filter.h); a message reports this once.
//
// Threads: any.

namespace crane::sandbox {

// prctl(PR_SET_SECCOMP), prctl(PR_GET_SECCOMP), seccomp(2): the kernel's result, or -errno.
long set_by_prctl(long mode, const void* filter) noexcept;
long mode() noexcept;
long by_seccomp(long operation, long flags, const void* argument) noexcept;

// unshare, setns and clone with CLONE_NEW*: a separate namespace would cut the server off from its
// replica. Returns -EPERM, as for a process without the privilege; counted with the filters.
bool wants_namespace(long flags) noexcept;
long refuse_namespace(const char* call) noexcept;

}  // namespace crane::sandbox
