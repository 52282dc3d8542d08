// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named pipes (mkfifo). All descriptors that have a FIFO open for reading share one end of a pipe
// (stream.h), and all that have it open for writing share the other. So O_NONBLOCK of an end is
// that of its first opener. Opening blocks until the other end is opened, as in POSIX.
//
// A FIFO in a directory of --bind that the server did not make belongs to the host. The writers are
// outside the server, and the leader's node opens it (dmt/outbound.h). Its bytes are those of a
// connection, dmt::is_host_fifo().
//
// Threads: REQUIRES the turn.

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"
#include "runtime/preload/ground/types.h"

namespace crane::fifo {

// Whether the path may be a FIFO.
bool may_be(const char* path, int flags) noexcept;
// Whether the kernel's open of a FIFO would neither wait nor change anything. Then is_one() checks
// the open descriptor, which saves a second look at the path.
bool opens_at_once(int flags) noexcept;
bool is_one(int fd, struct stat& status) noexcept;
// Whether open(2) would find a FIFO at the path; fills in its status. REQUIRES: may_be.
bool find(int directory, const char* path, int flags, struct stat& status) noexcept;

// Returns a descriptor or a negative error number.
int open(Turn& turn, int directory, const char* path, int flags,
         const struct stat& status) noexcept;

// Reads from a FIFO of the host.
ssize_t read(Turn& turn, int fd, std::uint32_t file, const Buffers& b) noexcept;

}  // namespace crane::fifo
