// SPDX-License-Identifier: Apache-2.0
#pragma once
// File systems without room (ENOSPC, EDQUOT).  Each replica has one of its own, or all write to one
// at unlike moments: a server that is told of it answers otherwise than the others, and its state
// is another one.  In a group a call that finds no room therefore waits until there is some, as the
// log does (STORE-T6); status says so, and the lead goes to a replica whose server is further.
// Without a node (crane-solo) the server is told, as natively.
//
// INVARIANT ROOM-4  In a group no server is told that the file system of a regular file or a name
//                   has no room, and a write is not cut short by it.
//
// A tmpfs is as full on all replicas: what is written there fails as natively.  Not covered are
// what libc's own streams write by themselves, writes by a mapping, and extended attributes.
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

  // Whether a call that failed with this error is to be made again; sleeps before.  `fd`: what it
  // writes to, or -1 for a name.
  bool again(int error, int fd = -1) noexcept;

 private:
  bool waits_ = false;
  std::uint32_t in_operation_ = 0;  // of the own slot, before
};

// A call of libc's form that makes or changes a name.
template <typename Call>
auto with_room(Call call, int fd = -1) noexcept {
  RoomWait room;
  auto result = call();
  while (result < 0 && room.again(errno, fd)) result = call();
  return result;
}
// A system call: negative errors.
template <typename Call>
long with_room_raw(Call call, int fd = -1) noexcept {
  RoomWait room;
  long result = call();
  while (result < 0 && room.again(static_cast<int>(-result), fd)) result = call();
  return result;
}

// The arguments of a write: `count` buffers at `v` go to `fd` at offset `at`; -1: its position.
struct Written {
  int fd;
  const struct iovec* v;
  int count;
  off64_t at = -1;
  int flags = 0;
};
// `done` bytes of it are written: the rest, where the kernel stopped for want of room.
ssize_t write_rest(const Written& w, ssize_t done) noexcept;

template <typename Call>
ssize_t write_with_room(const Written& w, Call call) noexcept {
  const ssize_t done = with_room(call, w.fd);
  return done <= 0 ? done : write_rest(w, done);
}

}  // namespace crane
