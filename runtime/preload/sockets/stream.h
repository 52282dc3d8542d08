// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pipes and unix streams between the server's own processes. The kernel carries the bytes. Counters
// in the segment decide which end is ready and which waits (rule 10), so the kernel call that
// follows can wait only for the kernel itself.
//
// A program image that Crane cannot hook in all places (stdio of another library) may write bytes
// that no wrapper counted. They are read after the last writer has gone.
//
// Threads: REQUIRES the turn.  Results: a value or a negative error number (fd.h).

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/buffers.h"

namespace crane::stream {

inline constexpr std::uint64_t kPipeCapacity = 64 * 1024;
// The kernel's pipe is larger than the agreed one, so that half-filled pages never block a write.
inline constexpr int kPipeKernelBytes = 256 * 1024;
inline constexpr std::uint64_t kUnixCapacity = 128 * 1024;

// Makes two files the ends of one pipe or pair.
void connect_ends(dmt::Layout& w, std::uint32_t a, std::uint32_t b,
                  std::uint64_t capacity) noexcept;

ssize_t read(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;
ssize_t write(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept;

// Unix streams: recvmsg and sendmsg with addresses, flags and rights.
ssize_t receive(Turn& turn, int fd, std::uint32_t file, struct msghdr& message, int flags) noexcept;
ssize_t send(Turn& turn, int fd, std::uint32_t file, const struct msghdr& message,
             int flags) noexcept;

// Called before the kernel sends the message, because a sent message cannot be refused.
bool has_room_for_rights(const dmt::Layout& w, const struct msghdr& message) noexcept;
// Record and bind the descriptors in a message that was sent to the socket `to` or received from
// `file`.
void note_sent_rights(Turn& turn, std::uint32_t to, const struct msghdr& message) noexcept;
void bind_peeked_rights(Turn& turn, std::uint32_t file, struct msghdr& message) noexcept;
// Drops the rights that were sent with bytes before `place` and were not received with them.
void drop_rights_before(dmt::Layout& w, std::uint32_t file, std::uint64_t place) noexcept;
void bind_received_rights(Turn& turn, std::uint32_t file, struct msghdr& message) noexcept;

int shutdown(Turn& turn, int fd, std::uint32_t file, int how) noexcept;

// For splice and tee: await_input returns how much a read of up to `wanted` bytes finds, 0 = the
// end; await_room returns the room, at least 1. Both wait as the policy says and return a negative
// error number on failure.
std::int64_t await_input(Turn& turn, int fd, std::uint32_t file, std::size_t wanted,
                         const WaitPolicy& policy) noexcept;
std::int64_t await_room(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept;
// Clears the error of a unix stream after the kernel returned it.
void clear_error(dmt::Layout& w, std::uint32_t file) noexcept;
// Account for `n` bytes that the kernel moved.
void note_read(dmt::Layout& w, std::uint32_t file, std::uint64_t n) noexcept;
void note_written(dmt::Layout& w, std::uint32_t file, std::uint64_t n) noexcept;

// Sets or clears O_DIRECT of a pipe's writing end. -EINVAL while the pipe is not empty, because its
// contents were counted in the other way.
int set_packets(dmt::Layout& w, std::uint32_t file, bool on) noexcept;

// F_GETPIPE_SZ and F_SETPIPE_SZ.
int pipe_size(const FileRecord& pipe) noexcept;
int set_pipe_size(Turn& turn, int fd, std::uint32_t file, long wanted) noexcept;

}  // namespace crane::stream
