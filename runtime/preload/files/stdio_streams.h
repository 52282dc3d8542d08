// SPDX-License-Identifier: Apache-2.0
#pragma once
// stdio on bound descriptors. libc's own streams make system calls that no wrapper sees, so a bound
// descriptor gets a stream of ours that calls the wrappers (wrap_stdio.cc).
//
// Threads: no turn may be held, because the streams allocate.

namespace crane {

// Replaces stdin, stdout or stderr by a stream of ours when its descriptor is bound; once.
void adopt_standard_stream(int fd) noexcept;
// Replaces all three when a program image starts.
void adopt_standard_streams() noexcept;

}  // namespace crane
