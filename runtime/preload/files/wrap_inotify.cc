// SPDX-License-Identifier: Apache-2.0
// inotify. Instances, watches and events are virtual (dmt/inotify.h). The events are the changes
// that the server's own processes make to files (notify.h). The kernel's descriptor only provides a
// number.
#include "dmt/base/log.h"
#include "dmt/inotify.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/sockets/tcp_socket.h"

namespace crane {
namespace notify {

// As Linux: copies whole events, and continues with the next buffer only if each one before was
// filled.
ssize_t read_events(Turn& turn, int fd, std::uint32_t file, const Buffers& buffers) noexcept {
  const WaitPolicy policy = tcp_socket::wait_policy_of(turn.w, file, 0, 0);
  while (dmt::first_event_bytes(turn.w, file) == 0) {
    const int error = await_change(turn, fd, file, policy);
    if (error < 0) return error;
  }
  std::size_t done = 0;
  for (std::size_t i = 0; i < buffers.count; ++i) {
    auto* at = static_cast<std::byte*>(buffers.vectors[i].iov_base);
    std::size_t room = buffers.vectors[i].iov_len;
    std::size_t size;
    while ((size = dmt::first_event_bytes(turn.w, file)) != 0 && size <= room) {
      dmt::take_event(turn.w, file, at);
      at += size;
      room -= size;
      done += size;
    }
    if (room != 0) break;
  }
  return done == 0 ? -EINVAL : static_cast<ssize_t>(done);
}

}  // namespace notify

namespace wrap {
namespace {

constexpr std::uint32_t kKnownBits = IN_ALL_EVENTS | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED |
                                     IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_CREATE |
                                     IN_MASK_ADD | IN_ISDIR | IN_ONESHOT;

int make_instance(Turn& turn, int flags) noexcept {
  if ((flags & ~(IN_NONBLOCK | IN_CLOEXEC)) != 0) return -EINVAL;
  if (turn.w.scheduler.inotify_files >= dmt::kInotifyInstancesMax) return -EMFILE;
  const long fd = raw_syscall(SYS_eventfd2, 0, (flags & IN_CLOEXEC) != 0 ? EFD_CLOEXEC : 0);
  return bind_virtual(turn, fd, FileKind::kInotify, (flags & IN_NONBLOCK) != 0);
}

// Returns an instance, or a negative error number.
std::int64_t instance_of(int fd) noexcept {
  const FileRecord* const f = bound_record(fd);
  if (f != nullptr && f->kind == FileKind::kInotify) return bound_file(fd);
  return is_open(fd) ? -EINVAL : -EBADF;
}

// Checks an open path as the process' effective user.
int check_readable(int there, const char* path) noexcept {
  const long error = raw_syscall(SYS_faccessat2, there, "", R_OK, AT_EMPTY_PATH | AT_EACCESS);
  return static_cast<int>(error == -ENOSYS ? raw_syscall(SYS_access, path, R_OK) : error);
}

int watch_place(Turn& turn, std::uint32_t instance, int there, const char* path,
                std::uint32_t mask) noexcept {
  struct stat s {};
  if (const int error = check_readable(there, path); error < 0) return error;
  const long error = raw_syscall(SYS_newfstatat, there, "", &s, AT_EMPTY_PATH);
  if (error < 0) return static_cast<int>(error);
  const std::uint64_t number = held_inode_number(turn, {there, nullptr, 0}, s);
  return dmt::add_file_watch(turn.w, instance, number, mask);
}

int add_watch(Turn& turn, int fd, const char* path, std::uint32_t mask) noexcept {
  if ((mask & ~kKnownBits) != 0 || mask == 0) return -EINVAL;
  if (!is_open(fd)) return -EBADF;
  if ((mask & IN_MASK_ADD) != 0 && (mask & IN_MASK_CREATE) != 0) return -EINVAL;
  const std::int64_t instance = instance_of(fd);
  if (instance < 0) return static_cast<int>(instance);
  static bool reported = false;
  if (first_time(reported)) {
    Message() << "inotify: the server gets events of its own processes only; changes that other "
                 "processes make are not replicated events";
  }
  const int how = ((mask & IN_DONT_FOLLOW) != 0 ? O_NOFOLLOW : 0) |
                  ((mask & IN_ONLYDIR) != 0 ? O_DIRECTORY : 0);
  const long there = raw_syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC | how, 0);
  if (there < 0) return static_cast<int>(there);
  const int result =
      watch_place(turn, static_cast<std::uint32_t>(instance), static_cast<int>(there), path, mask);
  raw_syscall(SYS_close, there);
  return result;
}

}  // namespace

int inotify_init() {
  Turn turn(Op::inotify_init);
  return finish_int(turn, make_instance(turn, 0));
}
int inotify_init1(int flags) {
  Turn turn(Op::inotify_init1);
  return finish_int(turn, make_instance(turn, flags));
}
int inotify_add_watch(int fd, const char* path, uint32_t mask) {
  Turn turn(Op::inotify_add_watch);
  return finish_int(turn, add_watch(turn, fd, path, mask));
}
int inotify_rm_watch(int fd, int watch) {
  Turn turn(Op::inotify_rm_watch);
  const std::int64_t instance = instance_of(fd);
  if (instance < 0) return finish_int(turn, instance);
  return finish_int(turn,
                    dmt::remove_file_watch(turn.w, static_cast<std::uint32_t>(instance), watch));
}

}  // namespace wrap
}  // namespace crane
