// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wholly virtual files that hold a count (eventfd, timerfd, signalfd) and the random devices. Their
// kernel descriptors only provide numbers.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::counter {

// REQUIRES: the program may access the memory of the buffers.
ssize_t read_count(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t write_event(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t read_signals(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t read_random(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t discard(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

}  // namespace crane::counter
