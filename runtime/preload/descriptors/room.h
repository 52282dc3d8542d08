// SPDX-License-Identifier: Apache-2.0
#pragma once
// File systems without room (ENOSPC, EDQUOT). Each replica has its own file system, or all write to
// one at different moments, so one server might get an error that the others do not get, and its
// state would diverge. In a group, a call that finds no room therefore waits until there is some,
// as the log does (STORE-T6). `status` shows the wait, and the lead moves to a replica whose server
// is further ahead. Without a node (crane-solo) the server gets the error, as natively.
//
// INVARIANT ROOM-4  In a group, no server gets an error because the file system of a regular file
//     or a name has no room, and no write is cut short for that reason.
//
// A tmpfs is equally full on all replicas, so writes to it fail as natively. Not covered: data that
// libc's own streams write, writes through a mapping, and extended attributes.
//
// Threads: the caller has the turn, or in serial mode has it between its operations.

#include <sys/uio.h>

#include <cerrno>
#include <cstdint>

namespace crane {

class RoomWait {
 public:
  RoomWait() noexcept = default;
  ~RoomWait();
  RoomWait(const RoomWait&) = delete;
  RoomWait& operator=(const RoomWait&) = delete;

  // Returns whether to repeat a call that failed with this error; sleeps first. `fd`: the file that
  // the call writes to, or -1 for a name.
  bool again(int error, int fd = -1) noexcept;

 private:
  bool waits_ = false;
  std::uint32_t in_operation_ = 0;  // previous value of the own slot
};

// Repeats a call of libc's form that creates or changes a name until there is room.
template <typename Call>
auto with_room(Call call, int fd = -1) noexcept {
  RoomWait room;
  auto result = call();
  while (result < 0 && room.again(errno, fd)) result = call();
  return result;
}
// with_room() for a system call, which returns negative errors.
template <typename Call>
long with_room_raw(Call call, int fd = -1) noexcept {
  RoomWait room;
  long result = call();
  while (result < 0 && room.again(static_cast<int>(-result), fd)) result = call();
  return result;
}

// The arguments of a write: `count` buffers at `v` go to `fd` at offset `at`; -1: at its position.
struct Written {
  int fd;
  const struct iovec* v;
  int count;
  off64_t at = -1;
  int flags = 0;
};
// Writes the rest after `done` bytes when the kernel stopped for lack of room. Returns the total.
ssize_t write_rest(const Written& w, ssize_t done) noexcept;

template <typename Call>
ssize_t write_with_room(const Written& w, Call call) noexcept {
  const ssize_t done = with_room(call, w.fd);
  return done <= 0 ? done : write_rest(w, done);
}

}  // namespace crane
