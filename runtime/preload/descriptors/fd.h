// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptors as the wrappers of the I/O half see them: bound to an open file description of the
// replica (dmt/files.h: virtual connections, pipes, eventfds, ...), or plain (regular files).
//
// A bound descriptor's number always comes from the kernel, so that dup, fork, exec, close-on-exec
// and passing work as ever; what it means is in the segment.
// Crane departs from the paper by one placeholder instead of a socketpair.  A virtual connection's
// placeholder is an unconnected unix socket: a call that escaped us gets ENOTCONN, it does not
// vanish.
//
// Internal functions return a value >= 0 or a negative error number; finish() makes libc's form.
//
// Threads: everything REQUIRES the turn but for bound_file() and is_plain(), which may be read
// without it to find out that a descriptor is plain (no thread changes what another thread uses,
// but in a program that is wrong natively too).
//
// INVARIANT FD-1  A descriptor that is not bound (file 0) is plain: its calls go to the kernel.
// INVARIANT FD-2  No kernel call is made while holding the turn that another thread of the replica
//               would have to end (D12).

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

// The number that fstat and the link of a descriptor tell of something virtual.  REQUIRES the turn.
inline std::uint64_t inode_of(const FileRecord& f) noexcept {
  return dmt::is_pipe_end(f.kind) && f.stream.name != 0 ? f.stream.name : f.object;
}

// --- results -------------------------------------------------------------------------------------

// A negative error number or a value, as libc gives it and as the schedule hash folds it.
inline ssize_t finish(Turn& turn, std::int64_t result) noexcept {
  turn.result(result);
  if (result >= 0) return static_cast<ssize_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}
inline int finish_int(Turn& turn, std::int64_t result) noexcept {
  return static_cast<int>(finish(turn, result));
}

// What a kind of file answers to a call that is none of its own.
template <int kError, typename Result, typename... Arguments>
Result refuse(Arguments...) noexcept {
  return -kError;
}

// A call of libc's form (-1 and errno) at a turn; the result is folded.
template <typename Call>
auto at_turn(Op op, Call call) noexcept {
  Turn turn(op);
  const auto result = call();
  turn.result(result < 0 ? -static_cast<std::int64_t>(errno) : static_cast<std::int64_t>(result));
  return result;
}

// --- blocking ------------------------------------------------------------------------------------

// How a call waits: not at all, until a virtual deadline, and whether SA_RESTART applies to it.
struct WaitPolicy {
  bool nonblocking = false;
  bool restarts = true;
  std::int64_t deadline_ns = dmt::kNoDeadline;
};

// Blocks until the file's readiness changes.  0: look again; else -EAGAIN, -EINTR, or -EBADF when
// `fd` does not refer to the file any more.
int await_change(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept;
// .. without a wait: a signal is pending, which interrupts it.
int take_interruption(Turn& turn, int fd, std::uint32_t file, const WaitPolicy& policy) noexcept;
int await_object(Turn& turn, int fd, std::uint32_t file, std::uint64_t object,
                 const WaitPolicy& policy) noexcept;

// --- binding -------------------------------------------------------------------------------------

// A new descriptor `fd` (or a negative error) refers to `file`, whose reference it takes; undone
// when the number is out of our range.  Returns the descriptor or a negative error.
int bind_new(Turn& turn, long fd, std::uint32_t file) noexcept;
// Both of a pair, or none: 0 and the numbers in `fds`, or a negative error.
int bind_two(Turn& turn, const int made[2], const std::uint32_t files[2], int fds[2]) noexcept;
// -EMFILE, the descriptor closed, when its number is out of our range; else 0.
int check_range(long fd) noexcept;
// A new descriptor is plain.  Returns it.
int bind_plain(Turn& turn, long fd) noexcept;
// What close does: waiters learn of it, the kernel's descriptor and the reference go.
int close_descriptor(Turn& turn, int fd) noexcept;
// `to` refers to what `fd` does (dup): `to` is open in the kernel already.
int bind_duplicate(Turn& turn, int fd, long to) noexcept;
void forget_descriptor(Turn& turn, int fd) noexcept;

// A placeholder for something wholly virtual; O_NONBLOCK and O_CLOEXEC as in `flags` of socket(2).
long make_placeholder(int flags) noexcept;
// A new virtual file of `kind` at the open descriptor `fd`, or its negative error number; -ENFILE.
int bind_virtual(Turn& turn, long fd, FileKind kind, bool nonblocking) noexcept;
// A new virtual socket of `kind` at a placeholder descriptor; -ENFILE.
int new_socket(Turn& turn, FileKind kind, int domain, int type) noexcept;

bool is_open(int fd) noexcept;

// In parallel mode calls below ours may have put the turn (malloc may lock): takes it back.
void regain(Turn& turn) noexcept;

// A signal that this thread's own call causes (SIGPIPE), delivered at the end of the turn.
void raise_virtually(Turn& turn, int signo) noexcept;

// Says something once per process.
bool first_time(bool& said) noexcept;

// The descriptor of this process that a path below /proc or /dev names, or -1.  Needs no turn.
int descriptor_named(const char* path) noexcept;

}  // namespace crane
