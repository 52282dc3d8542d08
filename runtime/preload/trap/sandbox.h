// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that puts itself into a seccomp sandbox.  The kernel applies its filter, to which our
// own calls are added (filter.h); the log says so once.
//
// Threads: any.

namespace crane::sandbox {

// prctl(PR_SET_SECCOMP), prctl(PR_GET_SECCOMP), seccomp(2): as the kernel, or -errno.
long set_by_prctl(long mode, const void* filter) noexcept;
long mode() noexcept;
long by_seccomp(long operation, long flags, const void* argument) noexcept;

// unshare, setns and clone with CLONE_NEW*: a namespace of its own would part the server from its
// replica.  -EPERM, as for a process without the privilege; counted with the filters.
bool wants_namespace(long flags) noexcept;
long refuse_namespace(const char* call) noexcept;

}  // namespace crane::sandbox
