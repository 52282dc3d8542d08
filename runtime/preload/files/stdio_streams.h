// SPDX-License-Identifier: Apache-2.0
#pragma once
// stdio on bound descriptors: libc's own streams read and write by system calls that no wrapper
// sees, so a bound descriptor gets a stream of ours that calls the wrappers (wrap_stdio.cc).
//
// Threads: no turn may be held (the streams allocate).

namespace crane {

// stdin, stdout or stderr becomes a stream of ours when its descriptor is bound; once.
void adopt_standard_stream(int fd) noexcept;
// All three: when a program image starts.
void adopt_standard_streams() noexcept;

}  // namespace crane
