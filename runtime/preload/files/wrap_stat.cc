// SPDX-License-Identifier: Apache-2.0
// stat and similar calls. A file has the replica's number for it and a virtual time of its last
// modification (DESIGN D7, rule 20). Its access time is equal to that time unless a program set
// another.
#include <sys/sysmacros.h>

#include "dmt/file_kind.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/descriptors/room.h"
#include "runtime/preload/files/file_ops.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/terminals/path.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/turn/vtime.h"

namespace crane::wrap {
namespace {

// Fills the status of a virtual terminal; its owner and mode are the kernel's.
template <typename Status>
void fill_terminal(const struct stat& kernel, const terminal::Identity& id, Status* s) noexcept {
  *s = {};
  s->st_dev = terminal::kDevice;
  s->st_ino = id.inode;
  s->st_rdev = id.device;
  s->st_mode = kernel.st_mode;
  s->st_uid = kernel.st_uid;
  s->st_gid = kernel.st_gid;
  s->st_nlink = 1;
  s->st_blksize = 1024;
  s->st_atim = s->st_mtim = s->st_ctim = to_timespec(virtual_wall_now());
}
void fill_terminal(const struct stat& kernel, const terminal::Identity& id,
                   struct statx* s) noexcept {
  struct stat as_stat;
  fill_terminal(kernel, id, &as_stat);
  *s = {};
  s->stx_mask = STATX_BASIC_STATS;
  s->stx_dev_major = major(as_stat.st_dev);
  s->stx_dev_minor = minor(as_stat.st_dev);
  s->stx_ino = as_stat.st_ino;
  s->stx_rdev_major = major(as_stat.st_rdev);
  s->stx_rdev_minor = minor(as_stat.st_rdev);
  s->stx_mode = static_cast<std::uint16_t>(as_stat.st_mode);
  s->stx_uid = as_stat.st_uid;
  s->stx_gid = as_stat.st_gid;
  s->stx_nlink = 1;
  s->stx_blksize = 1024;
  s->stx_mtime.tv_sec = as_stat.st_mtim.tv_sec;
  s->stx_mtime.tv_nsec = static_cast<std::uint32_t>(as_stat.st_mtim.tv_nsec);
  s->stx_atime = s->stx_ctime = s->stx_mtime;
}

// Returns 0 or a negative error number; 1: the place is not a virtual terminal.
template <typename Status>
int describe_terminal(const dmt::Layout& w, const Place& place, Status* s) noexcept {
  const bool by_descriptor = place.path == nullptr || place.path[0] == '\0';
  const std::uint32_t file = by_descriptor ? terminal::terminal_file(place.directory) : 0;
  const std::uint16_t named = by_descriptor ? 0 : terminal::find_named(w, place.path);
  if (file == 0 && named == 0) return 1;
  struct stat kernel;
  const terminal::KernelPath path(w, place.path);
  const long error = file != 0 ? raw_syscall(SYS_fstat, place.directory, &kernel)
                               : raw_syscall(SYS_newfstatat, AT_FDCWD, path.get(), &kernel, 0);
  if (error < 0) return static_cast<int>(error);
  const terminal::Identity id =
      file != 0 ? terminal::identity_of(w, file) : terminal::identity_of_line(named);
  fill_terminal(kernel, id, s);
  return 0;
}

// Fills the status of a virtual file, which is equal on every replica.
template <typename Status>
bool describe_bound(int fd, Status* s) noexcept {
  const FileRecord* f = bound_record(fd);
  if (f == nullptr) return false;
  *s = {};
  s->st_dev = 8;
  s->st_ino = inode_of(*f);
  s->st_mode = ops_of(*f).mode;
  s->st_nlink = 1;
  s->st_uid = static_cast<uid_t>(raw_syscall(SYS_geteuid));
  s->st_gid = static_cast<gid_t>(raw_syscall(SYS_getegid));
  s->st_rdev = ops_of(*f).device;
  s->st_blksize = 4096;
  return true;
}

// Makes the call and replaces the replica's own values in its result.
template <typename Status, typename Call>
int status_by_name(Op op, const Place& place, Status* s, Call call) noexcept {
  Turn turn(op);
  if (const int described = describe_terminal(turn.w, place, s); described <= 0) {
    return finish_int(turn, described);
  }
  const int result = call();
  if (result == 0) {
    describe_plain(turn, place, *s);
    turn.result(static_cast<std::uint64_t>(s->st_ino) ^
                static_cast<std::uint64_t>(to_ns(s->st_mtim)));
  }
  return result;
}

template <typename Status, typename Call>
int status_of(Op op, int fd, Status* s, Call call) noexcept {
  if (!is_plain(fd) && terminal::terminal_file(fd) == 0) {
    Turn turn(op);
    if (describe_bound(fd, s)) return finish_int(turn, 0);
  }
  return status_by_name(op, {fd, nullptr, 0}, s, call);
}

constexpr const struct timespec* kNow = nullptr;

// UTIME_NOW and missing times mean virtual time.
const struct timespec* virtual_times(const struct timespec* given,
                                     struct timespec (&out)[2]) noexcept {
  const struct timespec now = to_timespec(virtual_wall_now());
  for (int i = 0; i < 2; ++i) {
    const bool is_now = given == kNow || given[i].tv_nsec == UTIME_NOW;
    out[i] = is_now ? now : given[i];
  }
  return out;
}

int set_times(Op op, int d, const char* p, const struct timespec* t, int flags) noexcept {
  struct timespec times[2];
  virtual_times(t, times);
  const TimesSet set{.access = t == kNow || t[0].tv_nsec != UTIME_OMIT,
                     .modification = t == kNow || t[1].tv_nsec != UTIME_OMIT};
  Turn turn(op);
  const long result = with_room_raw([&] { return raw_syscall(SYS_utimensat, d, p, times, flags); });
  if (result == 0) {
    note_times_set(turn, d, p, flags, set);
    const std::uint32_t event = set.access && set.modification ? IN_ATTRIB
                                : set.access                   ? IN_ACCESS
                                : set.modification             ? IN_MODIFY
                                                               : 0;
    notify::by_place(turn.w, d, p, flags, event);
  }
  return finish_int(turn, result);
}

int set_times(Op op, int d, const char* p, const struct timeval* t, int flags) noexcept {
  if (t == nullptr) return set_times(op, d, p, kNow, flags);
  const struct timespec times[2] = {{t[0].tv_sec, t[0].tv_usec * 1000},
                                    {t[1].tv_sec, t[1].tv_usec * 1000}};
  return set_times(op, d, p, times, flags);
}

}  // namespace

int stat(const char* p, struct stat* s) {
  return status_by_name(Op::stat, {AT_FDCWD, p, 0}, s, [=] { return real::stat(p, s); });
}
int stat64(const char* p, struct stat64* s) {
  return status_by_name(Op::stat64, {AT_FDCWD, p, 0}, s, [=] { return real::stat64(p, s); });
}
int lstat(const char* p, struct stat* s) {
  return status_by_name(Op::lstat, {AT_FDCWD, p, AT_SYMLINK_NOFOLLOW}, s,
                        [=] { return real::lstat(p, s); });
}
int lstat64(const char* p, struct stat64* s) {
  return status_by_name(Op::lstat64, {AT_FDCWD, p, AT_SYMLINK_NOFOLLOW}, s,
                        [=] { return real::lstat64(p, s); });
}
int fstat(int fd, struct stat* s) {
  return status_of(Op::fstat, fd, s, [=] { return real::fstat(fd, s); });
}
int fstat64(int fd, struct stat64* s) {
  return status_of(Op::fstat64, fd, s, [=] { return real::fstat64(fd, s); });
}
int fstatat(int d, const char* p, struct stat* s, int f) {
  if (p != nullptr && p[0] == '\0' && (f & AT_EMPTY_PATH) != 0) return wrap::fstat(d, s);
  return status_by_name(Op::fstatat, {d, p, f}, s, [=] { return real::fstatat(d, p, s, f); });
}
int fstatat64(int d, const char* p, struct stat64* s, int f) {
  if (p != nullptr && p[0] == '\0' && (f & AT_EMPTY_PATH) != 0) return wrap::fstat64(d, s);
  return status_by_name(Op::fstatat64, {d, p, f}, s, [=] { return real::fstatat64(d, p, s, f); });
}
// The names that programs built for older libraries call.
int __xstat(int, const char* p, struct stat* s) { return wrap::stat(p, s); }
int __xstat64(int, const char* p, struct stat64* s) { return wrap::stat64(p, s); }
int __lxstat(int, const char* p, struct stat* s) { return wrap::lstat(p, s); }
int __lxstat64(int, const char* p, struct stat64* s) { return wrap::lstat64(p, s); }
int __fxstat(int, int fd, struct stat* s) { return wrap::fstat(fd, s); }
int __fxstat64(int, int fd, struct stat64* s) { return wrap::fstat64(fd, s); }
int __fxstatat(int, int d, const char* p, struct stat* s, int f) {
  return wrap::fstatat(d, p, s, f);
}
int __fxstatat64(int, int d, const char* p, struct stat64* s, int f) {
  return wrap::fstatat64(d, p, s, f);
}

int statx(int d, const char* p, int f, unsigned mask, struct statx* s) {
  Turn turn(Op::statx);
  if (const int described = describe_terminal(turn.w, {d, p, f}, s); described <= 0) {
    return finish_int(turn, described);
  }
  const int result = real::statx(d, p, f, mask | STATX_BASIC_STATS, s);
  if (result == 0) {
    describe_plain(turn, {d, p, f}, *s);
    turn.result(static_cast<std::uint64_t>(s->stx_ino));
  }
  return result;
}

// Fails, because a handle contains the file system's own numbers.
int name_to_handle_at(int, const char*, struct file_handle*, int*, int) { return fail(EOPNOTSUPP); }

int utimensat(int d, const char* p, const struct timespec* t, int f) {
  return set_times(Op::utimensat, d, p, t, f);
}
int futimens(int fd, const struct timespec* t) {
  return set_times(Op::futimens, fd, nullptr, t, 0);
}
int utimes(const char* p, const struct timeval* t) {
  return set_times(Op::utimes, AT_FDCWD, p, t, 0);
}
int lutimes(const char* p, const struct timeval* t) {
  return set_times(Op::lutimes, AT_FDCWD, p, t, AT_SYMLINK_NOFOLLOW);
}
int futimes(int fd, const struct timeval* t) { return set_times(Op::futimes, fd, nullptr, t, 0); }
int utime(const char* p, const struct utimbuf* t) {
  if (t == nullptr) return set_times(Op::utime, AT_FDCWD, p, kNow, 0);
  const struct timespec times[2] = {{t->actime, 0}, {t->modtime, 0}};
  return set_times(Op::utime, AT_FDCWD, p, times, 0);
}

}  // namespace crane::wrap
