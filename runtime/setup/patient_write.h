// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writing to a terminal or pipe whose reader may be stopped, without waiting for it.  The
// descriptor is shared with other processes, so that it cannot be made non-blocking.
//
// Threads: plain functions.

#include <sys/types.h>

#include <cstddef>

namespace crane::setup {

// As write(2), of as many bytes as find room now; -1 with EAGAIN where none does.
ssize_t write_what_fits(int fd, const char* data, std::size_t size) noexcept;

}  // namespace crane::setup
