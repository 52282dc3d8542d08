// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptors as the I/O wrappers see them. A descriptor is either bound to an open file
// description of the replica (dmt/files.h: virtual connections, pipes, eventfds, ...) or plain
// (regular files).
//
// The number of a bound descriptor always comes from the kernel, so dup, fork, exec, close-on-exec
// and descriptor passing work as usual. Its meaning is in the segment.
// The paper uses a socketpair for each connection; Crane uses one placeholder. The placeholder of a
// virtual connection is an unconnected unix socket, so a call that escapes the wrappers gets
// ENOTCONN and its data does not vanish.
//
// Internal functions return a value >= 0 or a negative error number; finish() converts to libc's
// form.
//
// Threads: everything REQUIRES the turn except bound_file() and is_plain(). A thread may call these
// two without the turn to find out that a descriptor is plain: no other thread changes a descriptor
// that is in use, except in programs that are wrong natively, too.
//
// INVARIANT FD-1  A descriptor that is not bound (file 0) is plain: its calls go to the kernel.
// INVARIANT FD-2  No kernel call that only another thread of the replica can end is made while
//     holding the turn (D12).

#include <cstddef>
#include <cstdint>

#include "dmt/base/raw.h"
#include "dmt/file_kind.h"
#include "dmt/files.h"
#include "dmt/layout.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/turn/turn.h"

namespace crane {

using dmt::FileKind;
using dmt::FileRecord;

inline std::uint32_t bound_file(int fd) noexcept {
  return dmt::file_of(without_turn(), self.process, fd);
}
inline bool is_plain(int fd) noexcept { return bound_file(fd) == 0; }
// The file of `fd`, or null when it is plain.
inline FileRecord* bound_record(int fd) noexcept {
  const std::uint32_t file = bound_file(fd);
  return file == 0 ? nullptr : &without_turn().files[file];
}

// The inode number that fstat and the descriptor's link report for a virtual file. REQUIRES the
// turn.
inline std::uint64_t inode_of(const FileRecord& f) noexcept {
  return dmt::is_pipe_end(f.kind) && f.stream.name != 0 ? f.stream.name : f.object;
}

// --- results -------------------------------------------------------------------------------------

// Converts a value or a negative error number to libc's form and folds it into the schedule hash.
inline ssize_t finish(Turn& turn, std::int64_t result) noexcept {
  turn.result(result);
  if (result >= 0) return static_cast<ssize_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}
inline int finish_int(Turn& turn, std::int64_t result) noexcept {
  return static_cast<int>(finish(turn, result));
}

// Fails with kError: the entry of a kind of file for a call that it does not support.
template <int kError, typename Result, typename... Arguments>
Result refuse(Arguments...) noexcept {
  return -kError;
}

// Makes a call of libc's form (-1 and errno) at a turn and folds its result.
template <typename Call>
auto at_turn(Op op, Call call) noexcept {
  Turn turn(op);
  const auto result = call();
  turn.result(result < 0 ? -static_cast<std::int64_t>(errno) : static_cast<std::int64_t>(result));
  return result;
}

// --- blocking ------------------------------------------------------------------------------------

// How a call waits: whether it may block, until which virtual deadline, and whether SA_RESTART
// applies.
struct WaitPolicy {
  bool nonblocking = false;
  bool restarts = true;
  std::int64_t deadline_ns = dmt::kNoDeadline;
};

// Blocks until the file's readiness changes. 0: check again; else -EAGAIN, -EINTR, or -EBADF when
// `fd` no longer refers to the file.
int await_change(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept;
// Does not wait: a pending signal interrupts the call at once. Results as for await_change().
int take_interruption(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept;
int await_object(Turn& turn, int fd, std::uint32_t file, std::uint64_t object,
                 const WaitPolicy& policy) noexcept;

// --- binding -------------------------------------------------------------------------------------

// Binds the new descriptor `fd` (or a negative error) to `file` and takes over the caller's
// reference to it. When the number is out of our range, it undoes both. Returns the descriptor or a
// negative error.
int bind_new(Turn& turn, long fd, std::uint32_t file) noexcept;
// Binds both descriptors of a pair or neither: 0 and the numbers in `fds`, or a negative error.
int bind_two(Turn& turn, const int made[2], const std::uint32_t files[2], int fds[2]) noexcept;
// Returns 0, or closes the descriptor and returns -EMFILE when its number is out of our range.
int check_range(long fd) noexcept;
// Marks a new descriptor as plain. Returns it.
int bind_plain(Turn& turn, long fd) noexcept;
// Does what close does: wakes the waiters, closes the kernel's descriptor and drops the reference.
int close_descriptor(Turn& turn, int fd) noexcept;
// Makes `to`, which is already open in the kernel, refer to what `fd` refers to (dup).
int bind_duplicate(Turn& turn, int fd, long to) noexcept;
void forget_descriptor(Turn& turn, int fd) noexcept;

// Opens a placeholder for a wholly virtual file.  `flags` may contain O_NONBLOCK and O_CLOEXEC.
long make_placeholder(int flags) noexcept;
// Binds a new virtual file of `kind` to the open descriptor `fd` (or a negative error). -ENFILE:
// the table is full.
int bind_virtual(Turn& turn, long fd, FileKind kind, bool nonblocking) noexcept;
// Opens a placeholder and binds a new virtual socket of `kind` to it. -ENFILE: the table is full.
int new_socket(Turn& turn, FileKind kind, int domain, int type) noexcept;

bool is_open(int fd) noexcept;

// Takes the turn again if the thread lost it: in parallel mode a call into libc may give it up
// (malloc may lock).
void regain(Turn& turn) noexcept;

// Sends this thread a signal that its own call causes (SIGPIPE); it is delivered at the end of the
// turn.
void raise_virtually(Turn& turn, int signo) noexcept;

// Returns true once per process, for a message that is printed once.
bool first_time(bool& logged) noexcept;

// Returns the descriptor of this process that a path below /proc or /dev names, or -1. Needs no
// turn.
int descriptor_named(const char* path) noexcept;

}  // namespace crane
