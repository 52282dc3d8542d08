// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes to a terminal or pipe without waiting for its reader, which may be stopped.  Other
// processes share the descriptor, so it cannot be made non-blocking.
//
// Threads: plain functions.

#include <sys/types.h>

#include <cstddef>

namespace crane::setup {

// Like write(2), but writes only as many bytes as there is room for now; -1 with EAGAIN if there is
// none.
ssize_t write_what_fits(int fd, const char* data, std::size_t size) noexcept;

}  // namespace crane::setup
