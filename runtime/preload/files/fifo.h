// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pipes with a name (mkfifo).  All who have a FIFO open for reading share one end of a pipe as
// stream.h knows it, all who have it open for writing the other; so O_NONBLOCK is that of the first
// who opened the end.  Opening blocks until the other end is opened, as POSIX says.
//
// A FIFO that the server has not made, in a directory of --bind, is one of the host: whom the
// server reads there is outside, and the leader's node opens it (dmt/outbound.h).  Its bytes are
// those of a connection, dmt::is_host_fifo().
//
// Threads: REQUIRES the turn.

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"
#include "runtime/preload/ground/types.h"

namespace crane::fifo {

// Whether there can be a FIFO at all.
bool may_be(const char* path, int flags) noexcept;
// Whether the kernel's open of one would wait for nothing and change nothing: then is_one() says it
// of what is open, which needs no second look at the path.
bool opens_at_once(int flags) noexcept;
bool is_one(int fd, struct stat& status) noexcept;
// Whether open(2) would find a FIFO there, and which.  REQUIRES: may_be.
bool find(int directory, const char* path, int flags, struct stat& status) noexcept;

// A descriptor or a negative error number.
int open(Turn& turn, int directory, const char* path, int flags,
         const struct stat& status) noexcept;

// Of one of the host.
ssize_t read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept;

}  // namespace crane::fifo
